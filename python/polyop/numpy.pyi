# Written by `make docs` from the operators' definitions.
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

Array = Any  # an array, an object with __dlpack__ or the buffer protocol, or lists of numbers
Out = np.ndarray | Sequence[np.ndarray | None] | None

def set_num_threads(count: int, pool: Executor | None = None) -> None: ...
def active_rotated_filter(
    input: Array,
    indices: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def argsort(
    x: Array,
    *,
    descending: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def assign_score_withk(
    scores: Array,
    point_features: Array,
    center_features: Array,
    knn_idx: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def ball_query(
    xyz: Array,
    center_xyz: Array,
    *,
    min_radius: float = ...,
    max_radius: float,
    sample_num: int,
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
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
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
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
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
def bezier_align(
    input: Array,
    rois: Array,
    *,
    output_height: int = ...,
    output_width: int = ...,
    spatial_scale: float = ...,
    sampling_ratio: int = ...,
    aligned: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def bicubic_interpolate(
    input: Array,
    *,
    scale_factor: Sequence[float] = ...,
    align_corners: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def border_align(
    input: Array,
    boxes: Array,
    *,
    pool_size: int,
    out: Out = None,
) -> np.ndarray: ...
def box_iou_quadri(
    boxes_a: Array,
    boxes_b: Array,
    *,
    mode: str = ...,
    out: Out = None,
) -> np.ndarray: ...
def box_iou_rotated(
    boxes_a: Array,
    boxes_b: Array,
    *,
    mode: str = ...,
    out: Out = None,
) -> np.ndarray: ...
def boxes_iou3d(
    boxes_a: Array,
    boxes_b: Array,
    *,
    mode: int | str = ...,
    out: Out = None,
) -> np.ndarray: ...
def carafe(
    features: Array,
    masks: Array,
    *,
    kernel_size: int,
    group_size: int = ...,
    scale_factor: float,
    out: Out = None,
) -> np.ndarray: ...
def causal_conv1d(
    x: Array,
    weight: Array,
    bias: Array = None,
    initial_state: Array = None,
    *,
    activation: str = ...,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def cdist(
    a: Array,
    b: Array,
    *,
    p: float = ...,
    condensed: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def chamfer_distance(
    xyz1: Array,
    xyz2: Array,
    *,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
def contour_expand(
    kernel_mask: Array,
    internal_kernel_label: Array,
    *,
    min_kernel_area: int,
    out: Out = None,
) -> np.ndarray: ...
def convex_giou(
    pointsets: Array,
    polygons: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def convex_iou(
    pointsets: Array,
    polygons: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def corner_pool(
    input: Array,
    *,
    mode: int | str = ...,
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
def correlation_lookup(
    volume: Array,
    coords: Array,
    *,
    radius: Sequence[int] = ...,
    out: Out = None,
) -> np.ndarray: ...
def cubic_resize(
    input: Array,
    sizes: Array,
    *,
    coordinate_transformation_mode: str = ...,
    cubic_coeff_a: float = ...,
    exclude_outside: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def cummax(
    input: Array,
    *,
    dim: int,
    mode: str = ...,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def cumulative(
    input: Array,
    *,
    axis: int = ...,
    mode: str = ...,
    exclusive: int = ...,
    reverse: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def custom_unique(
    x: Array,
    *,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
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
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
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
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
def dft(
    signal: Array,
    *,
    dimensions: int = ...,
    inverse: int = ...,
    onesided: int = ...,
    odd: int = ...,
    norm: str = ...,
    out: Out = None,
) -> np.ndarray: ...
def diff_iou_rotated(
    boxes_a: Array,
    boxes_b: Array,
    *,
    dimensions: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def diff_iou_rotated_sort_vertices(
    vertices: Array,
    mask: Array,
    num_valid: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def dynamic_resize(
    input: Array,
    scales: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def dynamic_scatter(
    feats: Array,
    coors: Array,
    *,
    reduce_type: str = ...,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
def dynamic_voxelize(
    points: Array,
    *,
    voxel_size: Sequence[float],
    point_cloud_range: Sequence[float],
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
def eig(
    a: Array,
    *,
    vectors: int = ...,
    check_errors: int = ...,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def eigh(
    a: Array,
    *,
    upper: int = ...,
    vectors: int = ...,
    check_errors: int = ...,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def embedding_bag(
    weight: Array,
    indices: Array,
    offsets: Array,
    per_sample_weights: Array = None,
    *,
    mode: str = ...,
    include_last_offset: int = ...,
    padding_idx: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def find_indices(
    x: Array,
    *,
    mode: str = ...,
    dimensions: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def flash_deform_attn(
    value: Array,
    spatial_shapes: Array,
    level_start_index: Array,
    loc_attn: Array,
    *,
    points: int,
    out: Out = None,
) -> np.ndarray: ...
def furthest_point_sampling(
    xyz: Array,
    *,
    num_points: int,
    out: Out = None,
) -> np.ndarray: ...
def furthest_point_sampling_with_dist(
    dist: Array,
    *,
    num_points: int,
    out: Out = None,
) -> np.ndarray: ...
def gather_points(
    features: Array,
    idx: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def gather_topk(
    data: Array,
    indices: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def gcd(
    a: Array,
    b: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
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
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
def grid_ball_query(
    xyz: Array,
    query: Array,
    *,
    radius: float,
    nsample: int,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def grid_priors(
    base: Array,
    height: Array,
    width: Array,
    *,
    stride_h: int = ...,
    stride_w: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def grid_sampler(
    input: Array,
    grid: Array,
    *,
    interpolation_mode: int | str = ...,
    padding_mode: int | str = ...,
    align_corners: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def group_points(
    features: Array,
    idx: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def hard_voxelize(
    points: Array,
    *,
    voxel_size: Sequence[float],
    point_cloud_range: Sequence[float],
    max_num_points: int = ...,
    max_voxels: int = ...,
    deterministic: int = ...,
    return_voxel_num: int = ...,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
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
    out: Out = None,
) -> np.ndarray: ...
def indice_conv(
    features: Array,
    filters: Array,
    indice_pairs: Array,
    indice_num_per_loc: Array,
    num_act_out: Array,
    *,
    is_subm: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def instance_norm(
    input: Array,
    scale: Array,
    B: Array,
    *,
    epsilon: float = ...,
    out: Out = None,
) -> np.ndarray: ...
def inverse(
    input: Array,
    *,
    check_errors: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def knn(
    xyz: Array,
    center: Array = None,
    *,
    k: int,
    transposed: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def knn_query(
    nsample: Array,
    xyz: Array,
    offset: Array,
    new_xyz: Array = None,
    new_offset: Array = None,
    *,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def masked_conv2d(
    features: Array,
    mask: Array,
    weight: Array,
    bias: Array = None,
    *,
    stride: Sequence[int] = ...,
    padding: Sequence[int] = ...,
    out: Out = None,
) -> np.ndarray: ...
def matrix_factors(
    a: Array,
    *,
    method: str = ...,
    check_errors: int = ...,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
def matrix_solve(
    a: Array,
    b: Array,
    pivots: Array = None,
    *,
    method: str = ...,
    transpose: int = ...,
    unit: int = ...,
    raises: str = ...,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def min_area_polygons(
    pointsets: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
def ms_deform_attn(
    value: Array,
    spatial_shapes: Array,
    level_start_index: Array,
    sampling_locations: Array,
    attention_weights: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def ms_deform_attn_by_head(
    value: Array,
    spatial_shapes: Array,
    level_start_index: Array,
    sampling_locations: Array,
    attention_weights: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def ms_deform_attn_of_offsets(
    value: Array,
    spatial_shapes: Array,
    reference_points: Array,
    sampling_offsets: Array,
    attention_weights: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
def my_add(
    a: Array,
    b: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def neighborhood_attention(
    query: Array,
    key: Array,
    value: Array,
    *,
    kernel_size: Sequence[int],
    dilation: Sequence[int] = ...,
    is_causal: Sequence[int] = ...,
    scale: float = ...,
    out: Out = None,
) -> np.ndarray: ...
def nms(
    boxes: Array,
    scores: Array,
    *,
    iou_threshold: float = ...,
    offset: int = ...,
    score_threshold: float = ...,
    max_output_boxes_per_class: int = ...,
    center_point_box: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def nms3d(
    boxes: Array,
    scores: Array,
    *,
    iou_threshold: float = ...,
    normal: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def nms_match(
    boxes: Array,
    scores: Array,
    iou_threshold: Array,
    score_threshold: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def nms_quadri(
    boxes: Array,
    scores: Array,
    *,
    iou_threshold: float = ...,
    score_threshold: float = ...,
    out: Out = None,
) -> np.ndarray: ...
def nms_rotated(
    boxes: Array,
    scores: Array,
    *,
    iou_threshold: float = ...,
    score_threshold: float = ...,
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
def onnx_nms(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array = None,
    iou_threshold: Array = None,
    score_threshold: Array = None,
    *,
    center_point_box: int = ...,
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
def openvino_roi_features(
    rois: Array,
    feats: Sequence[Array],
    *,
    output_size: int = ...,
    sampling_ratio: int = ...,
    pyramid_scales: Sequence[int],
    aligned: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def order_statistic(
    x: Array,
    *,
    statistic: str = ...,
    k: int = ...,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def pillar_scatter(
    features: Array,
    coords: Array,
    num: Array = None,
    *,
    dense_shape: Sequence[int],
    batch_size: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def pixel_group(
    score: Array,
    mask: Array,
    embedding: Array,
    kernel_label: Array,
    kernel_contour: Array,
    *,
    kernel_region_num: int,
    distance_threshold: float,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def planar_grid_sampler(
    input: Array,
    grid: Array,
    *,
    interpolation_mode: int | str = ...,
    padding_mode: int | str = ...,
    align_corners: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def points_in_boxes_all(
    points: Array,
    boxes: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def points_in_boxes_part(
    points: Array,
    boxes: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def points_in_polygons(
    points: Array,
    polygons: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def prroi_pool(
    features: Array,
    rois: Array,
    *,
    pooled_height: int = ...,
    pooled_width: int = ...,
    spatial_scale: float = ...,
    out: Out = None,
) -> np.ndarray: ...
def psa_mask(
    input: Array,
    *,
    psa_type: int | str = ...,
    mask_size: Sequence[int],
    out: Out = None,
) -> np.ndarray: ...
def qkv_attention(
    query: Array,
    key: Array,
    value: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def qr(
    a: Array,
    *,
    complete: int = ...,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
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
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
def random_distribution(
    seed: Array,
    a: Array,
    b: Array = None,
    *,
    distribution: str = ...,
    out: Out = None,
) -> np.ndarray: ...
def repeat_indices(
    repeats: Array,
    total: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> np.ndarray: ...
def roi_pool(
    input: Array,
    rois: Array,
    *,
    output_height: int = ...,
    output_width: int = ...,
    spatial_scale: float = ...,
    rounded: int = ...,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def roiaware_pool3d(
    rois: Array,
    points: Array,
    features: Array,
    *,
    out_size: Sequence[int],
    max_pts_per_voxel: int = ...,
    mode: str = ...,
    out: Out = None,
) -> np.ndarray: ...
def roipoint_pool3d(
    points: Array,
    features: Array,
    boxes: Array,
    *,
    num_sampled_points: int = ...,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def rotate(
    img: Array,
    angle: Array,
    center: Array,
    *,
    interpolation: int | str = ...,
    out: Out = None,
) -> np.ndarray: ...
def rotated_feature_align(
    features: Array,
    best_bboxes: Array,
    *,
    spatial_scale: float = ...,
    points: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def scaled_dot_product_attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array = None,
    *,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def scatter_nd(
    data: Array,
    indices: Array,
    updates: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def scatter_reduce(
    data: Array,
    indices: Array,
    updates: Array,
    *,
    axis: int = ...,
    reduction: str = ...,
    include_self: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def search_sorted(
    sorted_sequence: Array,
    values: Array,
    *,
    right: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def segment_csr(
    src: Array,
    indptr: Array,
    *,
    reduce: str = ...,
    out: Out = None,
) -> np.ndarray: ...
def select_and_pad(
    feat: Array,
    flags: Array,
    invalid: Array,
    *,
    P: int,
    out: Out = None,
) -> np.ndarray: ...
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
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def slogdet(
    a: Array,
    *,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def soft_nms(
    boxes: Array,
    scores: Array,
    *,
    iou_threshold: float = ...,
    sigma: float = ...,
    min_score: float = ...,
    method: int | str = ...,
    offset: int = ...,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def softmax(
    x: Array,
    *,
    axis: int = ...,
    log: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def special_binary(
    a: Array,
    b: Array,
    *,
    function: str = ...,
    variant: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def special_unary(
    x: Array,
    *,
    function: str = ...,
    variant: int = ...,
    out: Out = None,
) -> np.ndarray: ...
def stacked_ball_query(
    xyz: Array,
    xyz_batch_cnt: Array,
    center_xyz: Array,
    center_xyz_batch_cnt: Array,
    *,
    min_radius: float = ...,
    max_radius: float,
    sample_num: int,
    out: Out = None,
) -> np.ndarray: ...
def svd(
    a: Array,
    *,
    full_matrices: int = ...,
    vectors: int = ...,
    check_errors: int = ...,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
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
    out: Out = None,
) -> np.ndarray: ...
def three_interpolate(
    features: Array,
    idx: Array,
    weight: Array,
    *,
    out: Out = None,
) -> np.ndarray: ...
def three_nn(
    target: Array,
    source: Array,
    *,
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def voxel_generator(
    points: Array,
    num_points: Array,
    *,
    max_num_points_per_voxel: int,
    max_voxels: int,
    point_cloud_range: Sequence[float],
    voxel_feature_num: int,
    voxel_size: Sequence[float],
    out: Out = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def voxel_grid(
    pos: Array,
    size: Array,
    start: Array = None,
    end: Array = None,
    *,
    out: Out = None,
) -> np.ndarray: ...
