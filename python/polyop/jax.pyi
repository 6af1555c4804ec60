# Written by `make docs` from the operators' definitions.
from collections.abc import Sequence
from typing import Any

import jax

Array = Any  # an array of JAX or NumPy, or lists of numbers

def active_rotated_filter(
    input: Array,
    indices: Array,
) -> jax.Array: ...
def argsort(
    x: Array,
    *,
    descending: int = ...,
) -> jax.Array: ...
def assign_score_withk(
    scores: Array,
    point_features: Array,
    center_features: Array,
    knn_idx: Array,
) -> jax.Array: ...
def ball_query(
    xyz: Array,
    center_xyz: Array,
    *,
    min_radius: float = ...,
    max_radius: float,
    sample_num: int,
) -> jax.Array: ...
def batched_nms(
    boxes: Array,
    scores: Array,
    *,
    background_label_id: int = ...,
    num_classes: int = ...,
    topk: int = ...,
    keep_topk: int,
    score_threshold: float = ...,
    iou_threshold: float = ...,
    is_normalized: int = ...,
    clip_boxes: int = ...,
    return_index: int = ...,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
def batched_rotated_nms(
    boxes: Array,
    scores: Array,
    *,
    background_label_id: int = ...,
    num_classes: int = ...,
    topk: int = ...,
    keep_topk: int,
    score_threshold: float = ...,
    iou_threshold: float = ...,
    is_normalized: int = ...,
    clip_boxes: int = ...,
) -> tuple[jax.Array, jax.Array]: ...
def bev_pool(
    depth: Array,
    feat: Array,
    ranks_depth: Array,
    ranks_feat: Array,
    ranks_bev: Array,
    interval_starts: Array,
    interval_lengths: Array,
    *,
    out_height: int = ...,
    out_width: int = ...,
    output_z: int = ...,
) -> jax.Array: ...
def bev_pool_volume(
    depth: Array,
    feat: Array,
    ranks_depth: Array,
    ranks_feat: Array,
    ranks_bev: Array,
    interval_starts: Array,
    interval_lengths: Array,
    *,
    out_height: int = ...,
    out_width: int = ...,
    output_z: int,
) -> jax.Array: ...
def bezier_align(
    input: Array,
    rois: Array,
    *,
    output_height: int = ...,
    output_width: int = ...,
    spatial_scale: float = ...,
    sampling_ratio: int = ...,
    aligned: int = ...,
) -> jax.Array: ...
def bicubic_interpolate(
    input: Array,
    *,
    scale_factor: Sequence[float] = ...,
    align_corners: int = ...,
) -> jax.Array: ...
def border_align(
    input: Array,
    boxes: Array,
    *,
    pool_size: int,
) -> jax.Array: ...
def box_iou_quadri(
    boxes_a: Array,
    boxes_b: Array,
    *,
    mode: str = ...,
) -> jax.Array: ...
def box_iou_rotated(
    boxes_a: Array,
    boxes_b: Array,
    *,
    mode: str = ...,
) -> jax.Array: ...
def boxes_iou3d(
    boxes_a: Array,
    boxes_b: Array,
    *,
    mode: int | str = ...,
) -> jax.Array: ...
def carafe(
    features: Array,
    masks: Array,
    *,
    kernel_size: int,
    group_size: int = ...,
    scale_factor: float,
) -> jax.Array: ...
def causal_conv1d(
    x: Array,
    weight: Array,
    bias: Array = None,
    initial_state: Array = None,
    *,
    activation: str = ...,
) -> tuple[jax.Array, jax.Array]: ...
def cdist(
    a: Array,
    b: Array,
    *,
    p: float = ...,
    condensed: int = ...,
) -> jax.Array: ...
def chamfer_distance(
    xyz1: Array,
    xyz2: Array,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]: ...
def contour_expand(
    kernel_mask: Array,
    internal_kernel_label: Array,
    *,
    min_kernel_area: int,
) -> jax.Array: ...
def convex_giou(
    pointsets: Array,
    polygons: Array,
) -> jax.Array: ...
def convex_iou(
    pointsets: Array,
    polygons: Array,
) -> jax.Array: ...
def corner_pool(
    input: Array,
    *,
    mode: int | str = ...,
) -> jax.Array: ...
def correlation(
    input1: Array,
    input2: Array,
    *,
    kernel_size: Sequence[int] = ...,
    max_displacement: int = ...,
    stride: Sequence[int] = ...,
    padding: Sequence[int] = ...,
    dilation: Sequence[int] = ...,
    dilation_patch: Sequence[int] = ...,
) -> jax.Array: ...
def correlation_lookup(
    volume: Array,
    coords: Array,
    *,
    radius: Sequence[int] = ...,
) -> jax.Array: ...
def cubic_resize(
    input: Array,
    sizes: Array,
    *,
    coordinate_transformation_mode: str = ...,
    cubic_coeff_a: float = ...,
    exclude_outside: int = ...,
) -> jax.Array: ...
def cummax(
    input: Array,
    *,
    dim: int,
    mode: str = ...,
) -> tuple[jax.Array, jax.Array]: ...
def cumulative(
    input: Array,
    *,
    axis: int = ...,
    mode: str = ...,
    exclusive: int = ...,
    reverse: int = ...,
) -> jax.Array: ...
def custom_unique(
    x: Array,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]: ...
def dcn_v3(
    input: Array,
    offset: Array,
    mask: Array,
    *,
    kernel_h: int = ...,
    kernel_w: int = ...,
    stride_h: int = ...,
    stride_w: int = ...,
    pad_h: int = ...,
    pad_w: int = ...,
    dilation_h: int = ...,
    dilation_w: int = ...,
    group: int,
    group_channels: int,
    offset_scale: float = ...,
    remove_center: int = ...,
) -> jax.Array: ...
def dcn_v4(
    input: Array,
    offset_mask: Array,
    *,
    kernel_h: int = ...,
    kernel_w: int = ...,
    stride_h: int = ...,
    stride_w: int = ...,
    pad_h: int = ...,
    pad_w: int = ...,
    dilation_h: int = ...,
    dilation_w: int = ...,
    group: int,
    group_channels: int,
    offset_scale: float = ...,
    remove_center: int = ...,
) -> jax.Array: ...
def decode_bbox3d(
    cls: Array,
    box: Array,
    dir: Array,
    *,
    point_cloud_range: Sequence[float],
    anchors: Sequence[float],
    anchor_bottom_height: Sequence[float],
    dir_offset: float,
    dir_limit_offset: float,
    num_dir_bins: int,
    score_thresh: float,
) -> tuple[jax.Array, jax.Array]: ...
def deform_conv2d(
    input: Array,
    offset: Array,
    weight: Array,
    *,
    stride: Sequence[int] = ...,
    padding: Sequence[int] = ...,
    dilation: Sequence[int] = ...,
    groups: int = ...,
    deform_groups: int = ...,
) -> jax.Array: ...
def deform_roi_pool(
    input: Array,
    rois: Array,
    offset: Array = None,
    *,
    pooled_height: int = ...,
    pooled_width: int = ...,
    spatial_scale: float = ...,
    sampling_ratio: float = ...,
    gamma: float = ...,
) -> jax.Array: ...
def dft(
    signal: Array,
    *,
    dimensions: int = ...,
    inverse: int = ...,
    onesided: int = ...,
    odd: int = ...,
    norm: str = ...,
) -> jax.Array: ...
def diff_iou_rotated(
    boxes_a: Array,
    boxes_b: Array,
    *,
    dimensions: int = ...,
) -> jax.Array: ...
def diff_iou_rotated_sort_vertices(
    vertices: Array,
    mask: Array,
    num_valid: Array,
) -> jax.Array: ...
def dynamic_resize(
    input: Array,
    scales: Array,
) -> jax.Array: ...
def dynamic_scatter(
    feats: Array,
    coors: Array,
    *,
    reduce_type: str = ...,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]: ...
def dynamic_voxelize(
    points: Array,
    *,
    voxel_size: Sequence[float],
    point_cloud_range: Sequence[float],
) -> jax.Array: ...
def efficient_nms(
    boxes: Array,
    scores: Array,
    anchors: Array = None,
    *,
    score_threshold: float,
    iou_threshold: float,
    background_class: int,
    max_output_boxes: int,
    score_activation: int,
    box_coding: int | str,
    class_agnostic: int = ...,
    return_detection_indices: int = ...,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]: ...
def eig(
    a: Array,
    *,
    vectors: int = ...,
    check_errors: int = ...,
) -> tuple[jax.Array, jax.Array]: ...
def eigh(
    a: Array,
    *,
    upper: int = ...,
    vectors: int = ...,
    check_errors: int = ...,
) -> tuple[jax.Array, jax.Array]: ...
def embedding_bag(
    weight: Array,
    indices: Array,
    offsets: Array,
    per_sample_weights: Array = None,
    *,
    mode: str = ...,
    include_last_offset: int = ...,
    padding_idx: int = ...,
) -> jax.Array: ...
def find_indices(
    x: Array,
    *,
    mode: str = ...,
    dimensions: int = ...,
) -> tuple[jax.Array, jax.Array]: ...
def flash_deform_attn(
    value: Array,
    spatial_shapes: Array,
    level_start_index: Array,
    loc_attn: Array,
    *,
    points: int,
) -> jax.Array: ...
def furthest_point_sampling(
    xyz: Array,
    *,
    num_points: int,
) -> jax.Array: ...
def furthest_point_sampling_with_dist(
    dist: Array,
    *,
    num_points: int,
) -> jax.Array: ...
def gather_points(
    features: Array,
    idx: Array,
) -> jax.Array: ...
def gather_topk(
    data: Array,
    indices: Array,
) -> jax.Array: ...
def gcd(
    a: Array,
    b: Array,
) -> jax.Array: ...
def get_indice_pairs(
    indices: Array,
    *,
    batch_size: int,
    spatial_shape: Sequence[int],
    ksize: Sequence[int],
    stride: Sequence[int] = ...,
    padding: Sequence[int] = ...,
    dilation: Sequence[int] = ...,
    out_padding: Sequence[int] = ...,
    subm: int = ...,
    transpose: int = ...,
    algo: int = ...,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]: ...
def get_indice_pairs_implicit_gemm(
    indices: Array,
    *,
    batch_size: int,
    spatial_shape: Sequence[int],
    ksize: Sequence[int],
    stride: Sequence[int] = ...,
    padding: Sequence[int] = ...,
    dilation: Sequence[int] = ...,
    out_padding: Sequence[int] = ...,
    subm: int = ...,
    transpose: int = ...,
    algo: int = ...,
    is_train: int = ...,
    do_sort: int = ...,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]: ...
def grid_ball_query(
    xyz: Array,
    query: Array,
    *,
    radius: float,
    nsample: int,
) -> tuple[jax.Array, jax.Array]: ...
def grid_priors(
    base: Array,
    height: Array,
    width: Array,
    *,
    stride_h: int = ...,
    stride_w: int = ...,
) -> jax.Array: ...
def grid_sampler(
    input: Array,
    grid: Array,
    *,
    interpolation_mode: int | str = ...,
    padding_mode: int | str = ...,
    align_corners: int = ...,
) -> jax.Array: ...
def group_points(
    features: Array,
    idx: Array,
) -> jax.Array: ...
def hard_voxelize(
    points: Array,
    *,
    voxel_size: Sequence[float],
    point_cloud_range: Sequence[float],
    max_num_points: int = ...,
    max_voxels: int = ...,
    deterministic: int = ...,
    return_voxel_num: int = ...,
) -> Any: ...
def implicit_gemm(
    features: Array,
    filters: Array,
    pair_fwd: Array,
    pair_mask: Array,
    mask_argsort: Array,
    bias: Array = None,
    *,
    is_train: int = ...,
    is_subm: int = ...,
    fp32_accum: int = ...,
    act_alpha: float = ...,
    act_beta: float = ...,
    output_scale: float = ...,
    output_add_scale: float = ...,
    act_type: int | str = ...,
) -> jax.Array: ...
def indice_conv(
    features: Array,
    filters: Array,
    indice_pairs: Array,
    indice_num_per_loc: Array,
    num_act_out: Array,
    *,
    is_subm: int = ...,
) -> tuple[jax.Array, jax.Array]: ...
def instance_norm(
    input: Array,
    scale: Array,
    B: Array,
    *,
    epsilon: float = ...,
) -> jax.Array: ...
def inverse(
    input: Array,
    *,
    check_errors: int = ...,
) -> jax.Array: ...
def knn(
    xyz: Array,
    center: Array = None,
    *,
    k: int,
    transposed: int = ...,
) -> jax.Array: ...
def knn_query(
    nsample: Array,
    xyz: Array,
    offset: Array,
    new_xyz: Array = None,
    new_offset: Array = None,
) -> tuple[jax.Array, jax.Array]: ...
def masked_conv2d(
    features: Array,
    mask: Array,
    weight: Array,
    bias: Array = None,
    *,
    stride: Sequence[int] = ...,
    padding: Sequence[int] = ...,
) -> jax.Array: ...
def matrix_factors(
    a: Array,
    *,
    method: str = ...,
    check_errors: int = ...,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]: ...
def matrix_solve(
    a: Array,
    b: Array,
    pivots: Array = None,
    *,
    method: str = ...,
    transpose: int = ...,
    unit: int = ...,
    raises: str = ...,
) -> tuple[jax.Array, jax.Array]: ...
def min_area_polygons(
    pointsets: Array,
) -> jax.Array: ...
def modulated_deform_conv2d(
    input: Array,
    offset: Array,
    mask: Array,
    weight: Array,
    bias: Array = None,
    *,
    stride: Sequence[int] = ...,
    padding: Sequence[int] = ...,
    dilation: Sequence[int] = ...,
    groups: int = ...,
    deform_groups: int = ...,
) -> jax.Array: ...
def ms_deform_attn(
    value: Array,
    spatial_shapes: Array,
    level_start_index: Array,
    sampling_locations: Array,
    attention_weights: Array,
) -> jax.Array: ...
def ms_deform_attn_by_head(
    value: Array,
    spatial_shapes: Array,
    level_start_index: Array,
    sampling_locations: Array,
    attention_weights: Array,
) -> jax.Array: ...
def ms_deform_attn_of_offsets(
    value: Array,
    spatial_shapes: Array,
    reference_points: Array,
    sampling_offsets: Array,
    attention_weights: Array,
) -> jax.Array: ...
def multi_level_roi_align(
    rois: Array,
    feats: Sequence[Array],
    *,
    output_height: int = ...,
    output_width: int = ...,
    sampling_ratio: int = ...,
    pool_mode: int | str = ...,
    aligned: int = ...,
    featmap_strides: Sequence[float],
    roi_scale_factor: float = ...,
    finest_scale: int = ...,
) -> jax.Array: ...
def multi_level_rotated_roi_align(
    rois: Array,
    feats: Sequence[Array],
    *,
    output_height: int = ...,
    output_width: int = ...,
    sampling_ratio: int = ...,
    clockwise: int = ...,
    aligned: int = ...,
    featmap_strides: Sequence[float],
    roi_scale_factor: float = ...,
    finest_scale: int = ...,
) -> jax.Array: ...
def my_add(
    a: Array,
    b: Array,
) -> jax.Array: ...
def neighborhood_attention(
    query: Array,
    key: Array,
    value: Array,
    *,
    kernel_size: Sequence[int],
    dilation: Sequence[int] = ...,
    is_causal: Sequence[int] = ...,
    scale: float = ...,
) -> jax.Array: ...
def nms(
    boxes: Array,
    scores: Array,
    *,
    iou_threshold: float = ...,
    offset: int = ...,
    score_threshold: float = ...,
    max_output_boxes_per_class: int = ...,
    center_point_box: int = ...,
) -> Any: ...
def nms3d(
    boxes: Array,
    scores: Array,
    *,
    iou_threshold: float = ...,
    normal: int = ...,
) -> tuple[jax.Array, jax.Array]: ...
def nms_match(
    boxes: Array,
    scores: Array,
    iou_threshold: Array,
    score_threshold: Array,
) -> tuple[jax.Array, jax.Array]: ...
def nms_quadri(
    boxes: Array,
    scores: Array,
    *,
    iou_threshold: float = ...,
    score_threshold: float = ...,
) -> tuple[jax.Array, jax.Array]: ...
def nms_rotated(
    boxes: Array,
    scores: Array,
    *,
    iou_threshold: float = ...,
    score_threshold: float = ...,
) -> tuple[jax.Array, jax.Array]: ...
def onnx_deform_conv(
    X: Array,
    W: Array,
    offset: Array,
    B: Array = None,
    mask: Array = None,
    *,
    dilations: Sequence[int] = ...,
    group: int = ...,
    kernel_shape: Sequence[int] = ...,
    offset_group: int = ...,
    pads: Sequence[int] = ...,
    strides: Sequence[int] = ...,
) -> jax.Array: ...
def onnx_nms(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array = None,
    iou_threshold: Array = None,
    score_threshold: Array = None,
    *,
    center_point_box: int = ...,
) -> tuple[jax.Array, jax.Array]: ...
def onnx_roi_align(
    X: Array,
    rois: Array,
    batch_indices: Array,
    *,
    coordinate_transformation_mode: str = ...,
    mode: str = ...,
    output_height: int = ...,
    output_width: int = ...,
    sampling_ratio: int = ...,
    spatial_scale: float = ...,
) -> jax.Array: ...
def openvino_deform_conv2d(
    input: Array,
    offset: Array,
    weight: Array,
    *,
    strides: Sequence[int] = ...,
    pads: Sequence[int] = ...,
    dilations: Sequence[int] = ...,
    group: int = ...,
    deformable_groups: int = ...,
    auto_pad: str = ...,
) -> jax.Array: ...
def openvino_roi_features(
    rois: Array,
    feats: Sequence[Array],
    *,
    output_size: int = ...,
    sampling_ratio: int = ...,
    pyramid_scales: Sequence[int],
    aligned: int = ...,
) -> jax.Array: ...
def order_statistic(
    x: Array,
    *,
    statistic: str = ...,
    k: int = ...,
) -> tuple[jax.Array, jax.Array]: ...
def pillar_scatter(
    features: Array,
    coords: Array,
    num: Array = None,
    *,
    dense_shape: Sequence[int],
    batch_size: int = ...,
) -> jax.Array: ...
def pixel_group(
    score: Array,
    mask: Array,
    embedding: Array,
    kernel_label: Array,
    kernel_contour: Array,
    *,
    kernel_region_num: int,
    distance_threshold: float,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
def planar_grid_sampler(
    input: Array,
    grid: Array,
    *,
    interpolation_mode: int | str = ...,
    padding_mode: int | str = ...,
    align_corners: int = ...,
) -> jax.Array: ...
def points_in_boxes_all(
    points: Array,
    boxes: Array,
) -> jax.Array: ...
def points_in_boxes_part(
    points: Array,
    boxes: Array,
) -> jax.Array: ...
def points_in_polygons(
    points: Array,
    polygons: Array,
) -> jax.Array: ...
def prroi_pool(
    features: Array,
    rois: Array,
    *,
    pooled_height: int = ...,
    pooled_width: int = ...,
    spatial_scale: float = ...,
) -> jax.Array: ...
def psa_mask(
    input: Array,
    *,
    psa_type: int | str = ...,
    mask_size: Sequence[int],
) -> jax.Array: ...
def qkv_attention(
    query: Array,
    key: Array,
    value: Array,
) -> jax.Array: ...
def qr(
    a: Array,
    *,
    complete: int = ...,
) -> tuple[jax.Array, jax.Array]: ...
def quantized_cubic_resize(
    input: Array,
    sizes: Array,
    *,
    coordinate_transformation_mode: str = ...,
    cubic_coeff_a: float = ...,
    exclude_outside: int = ...,
    input_scale: float = ...,
    input_zero_point: int = ...,
    output_scale: float = ...,
    output_zero_point: int = ...,
) -> jax.Array: ...
def quantized_deform_conv(
    X: Array,
    W: Array,
    W_scale: Array,
    offset: Array,
    B: Array = None,
    mask: Array = None,
    *,
    dilations: Sequence[int] = ...,
    group: int = ...,
    kernel_shape: Sequence[int] = ...,
    offset_group: int = ...,
    pads: Sequence[int] = ...,
    strides: Sequence[int] = ...,
    input_scale: float = ...,
    input_zero_point: int = ...,
    output_scale: float = ...,
    output_zero_point: int = ...,
) -> jax.Array: ...
def quantized_grid_sampler(
    input: Array,
    grid: Array,
    *,
    interpolation_mode: int | str = ...,
    padding_mode: int | str = ...,
    align_corners: int = ...,
    input_scale: float = ...,
    input_zero_point: int = ...,
    output_scale: float = ...,
    output_zero_point: int = ...,
) -> jax.Array: ...
def quantized_ms_deform_attn(
    value: Array,
    spatial_shapes: Array,
    level_start_index: Array,
    sampling_locations: Array,
    attention_weights: Array,
    *,
    input_scale: float = ...,
    input_zero_point: int = ...,
    output_scale: float = ...,
    output_zero_point: int = ...,
) -> jax.Array: ...
def quantized_roi_align(
    X: Array,
    rois: Array,
    batch_indices: Array,
    *,
    coordinate_transformation_mode: str = ...,
    mode: str = ...,
    output_height: int = ...,
    output_width: int = ...,
    sampling_ratio: int = ...,
    spatial_scale: float = ...,
    input_scale: float = ...,
    input_zero_point: int = ...,
    output_scale: float = ...,
    output_zero_point: int = ...,
) -> jax.Array: ...
def quick_cumsum(
    x: Array,
    geom_feats: Array,
    interval_lengths: Array,
    interval_starts: Array,
    *,
    batch_size: int,
    dimension: int,
    height: int,
    width: int,
) -> jax.Array: ...
def random_distribution(
    seed: Array,
    a: Array,
    b: Array = None,
    *,
    distribution: str = ...,
) -> jax.Array: ...
def repeat_indices(
    repeats: Array,
    total: Array,
) -> jax.Array: ...
def riroi_align_rotated(
    input: Array,
    rois: Array,
    *,
    pooled_height: int = ...,
    pooled_width: int = ...,
    spatial_scale: float = ...,
    num_samples: int = ...,
    num_orientations: int = ...,
    clockwise: int = ...,
) -> jax.Array: ...
def roi_align(
    input: Array,
    rois: Array,
    *,
    output_height: int = ...,
    output_width: int = ...,
    spatial_scale: float = ...,
    sampling_ratio: int = ...,
    mode: str = ...,
    aligned: int = ...,
) -> jax.Array: ...
def roi_align_rotated(
    input: Array,
    rois: Array,
    *,
    output_height: int = ...,
    output_width: int = ...,
    spatial_scale: float = ...,
    sampling_ratio: int = ...,
    aligned: int = ...,
    clockwise: int = ...,
) -> jax.Array: ...
def roi_pool(
    input: Array,
    rois: Array,
    *,
    output_height: int = ...,
    output_width: int = ...,
    spatial_scale: float = ...,
    rounded: int = ...,
) -> tuple[jax.Array, jax.Array]: ...
def roiaware_pool3d(
    rois: Array,
    points: Array,
    features: Array,
    *,
    out_size: Sequence[int],
    max_pts_per_voxel: int = ...,
    mode: str = ...,
) -> jax.Array: ...
def roipoint_pool3d(
    points: Array,
    features: Array,
    boxes: Array,
    *,
    num_sampled_points: int = ...,
) -> tuple[jax.Array, jax.Array]: ...
def rotate(
    img: Array,
    angle: Array,
    center: Array,
    *,
    interpolation: int | str = ...,
) -> jax.Array: ...
def rotated_feature_align(
    features: Array,
    best_bboxes: Array,
    *,
    spatial_scale: float = ...,
    points: int = ...,
) -> jax.Array: ...
def scaled_dot_product_attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array = None,
) -> tuple[jax.Array, jax.Array]: ...
def scatter_nd(
    data: Array,
    indices: Array,
    updates: Array,
) -> jax.Array: ...
def scatter_reduce(
    data: Array,
    indices: Array,
    updates: Array,
    *,
    axis: int = ...,
    reduction: str = ...,
    include_self: int = ...,
) -> jax.Array: ...
def search_sorted(
    sorted_sequence: Array,
    values: Array,
    *,
    right: int = ...,
) -> jax.Array: ...
def segment_csr(
    src: Array,
    indptr: Array,
    *,
    reduce: str = ...,
) -> jax.Array: ...
def select_and_pad(
    feat: Array,
    flags: Array,
    invalid: Array,
    *,
    P: int,
) -> jax.Array: ...
def selective_scan(
    u: Array,
    delta: Array,
    A: Array,
    B: Array,
    C: Array,
    D: Array = None,
    z: Array = None,
    delta_bias: Array = None,
    initial_state: Array = None,
    *,
    delta_softplus: int = ...,
) -> tuple[jax.Array, jax.Array]: ...
def slogdet(
    a: Array,
) -> tuple[jax.Array, jax.Array]: ...
def soft_nms(
    boxes: Array,
    scores: Array,
    *,
    iou_threshold: float = ...,
    sigma: float = ...,
    min_score: float = ...,
    method: int | str = ...,
    offset: int = ...,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
def softmax(
    x: Array,
    *,
    axis: int = ...,
    log: int = ...,
) -> jax.Array: ...
def special_binary(
    a: Array,
    b: Array,
    *,
    function: str = ...,
    variant: int = ...,
) -> jax.Array: ...
def special_unary(
    x: Array,
    *,
    function: str = ...,
    variant: int = ...,
) -> jax.Array: ...
def stacked_ball_query(
    xyz: Array,
    xyz_batch_cnt: Array,
    center_xyz: Array,
    center_xyz_batch_cnt: Array,
    *,
    min_radius: float = ...,
    max_radius: float,
    sample_num: int,
) -> jax.Array: ...
def svd(
    a: Array,
    *,
    full_matrices: int = ...,
    vectors: int = ...,
    check_errors: int = ...,
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
def tensorrt_roi_align(
    X: Array,
    rois: Array,
    batch_indices: Array,
    *,
    coordinate_transformation_mode: int | str = ...,
    mode: int | str = ...,
    output_height: int = ...,
    output_width: int = ...,
    sampling_ratio: int = ...,
    spatial_scale: float = ...,
) -> jax.Array: ...
def three_interpolate(
    features: Array,
    idx: Array,
    weight: Array,
) -> jax.Array: ...
def three_nn(
    target: Array,
    source: Array,
) -> tuple[jax.Array, jax.Array]: ...
def voxel_generator(
    points: Array,
    num_points: Array,
    *,
    max_num_points_per_voxel: int,
    max_voxels: int,
    point_cloud_range: Sequence[float],
    voxel_feature_num: int,
    voxel_size: Sequence[float],
) -> tuple[jax.Array, jax.Array, jax.Array]: ...
def voxel_grid(
    pos: Array,
    size: Array,
    start: Array = None,
    end: Array = None,
) -> jax.Array: ...
