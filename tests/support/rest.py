"""The tests that `make test` leaves to `make test-rest`, to stay short.

`make test` covers every Python area once, and every operator in ONNX Runtime and in PyTorch. Entries are paths below
tests/, followed by `::` and the name of a test unless they mean the whole file. The marker `slow` is independent of
this list.
"""

from __future__ import annotations

# The marker `rest`.
REST = [
    # Every node in every runtime, on every release.
    "accelerate/test_accelerator.py::test_same_results_in_older_onnxruntimes",
    "portable/test_functions.py::test_functions_in_older_onnxruntimes",
    "runtimes/test_lifetime.py::test_accelerated_sessions_and_runs_leak_nothing",
    "runtimes/test_onnxruntime_adapter.py::test_every_node_runs_on_the_older_onnxruntimes",
    "runtimes/test_openvino.py::test_oldest_release",
    "runtimes/test_torch.py::test_inductor_compiles_dynamic_sizes",
    "runtimes/test_shared_node_names.py::test_older_onnxruntimes",
    "runtimes/test_lifetime.py::test_consecutive_sessions_leak_nothing",
    # TensorRT's parser and builder, for which `make test-rest` builds the plugin library.
    "runtimes/test_one_door.py::test_tensorrt",
    "runtimes/test_tensorrt.py::test_a_dynamic_batch_needs_no_shapes",
    "runtimes/test_tensorrt.py::test_every_exported_node_parses_and_builds",
    "runtimes/test_tensorrt.py::test_half_precision_keeps_inputs_and_outputs",
    "runtimes/test_tensorrt.py::test_what_is_wrong_is_explained",
    # Whole models.
    "mmcv/test_deploy_openmmlab.py",
    "mmcv/test_mmcv_ext_clouds.py",
    "mmcv/test_mmcv_ext_models.py",
    "mmcv/test_mmcv_ext_published.py",
    "models/test_lidar_models.py",
    "models/test_main_line.py::test_deformable_net",
    "models/test_main_line.py::test_internimage",
    "models/test_main_line.py::test_point_cloud_net",
    "optimize/test_optimize_models.py",
    # Other ways to install it for MMCV.
    "mmcv/test_mmcv_ext.py::test_install_by_the_environment_or_a_command",
    # Large tensors and files.
    "program/test_batch.py::test_an_image_beyond_the_limit_of_pillow",
    "operators/test_large.py",
    "optimize/test_optimize_files.py::test_a_large_file_keeps_its_weights",
    "optimize/test_optimize_files.py::test_large_models_need_little_memory",
    # Programs that run in a new process.
    "pytorch_operators/test_translations.py::test_other_programs_keep_their_graphs",
    # Pages and examples.
    "docs/test_docs.py::test_the_readmes_commands_run_without_an_activated_environment",
    "docs/test_docs.py::test_the_readmes_export_prints_what_it_says",
    "docs/test_examples.py::test_asinh",
    "docs/test_examples.py::test_my_add",
    "docs/test_examples.py::test_torch_cluster",
    "docs/test_guides.py",
    "optimize/test_optimize_command.py::test_documentation_page",
    "optimize/test_optimize.py::test_measuring",
    "optimize/test_optimize_command.py::test_report",
    "optimize/test_optimize_command.py::test_uses_the_given_inputs",
    "runtimes/test_openvino.py::test_documentation_page",
    # Builds of C++ and benchmarks.
    "development/test_add_operator.py::test_it_runs_in_onnxruntime",
    "development/test_add_operator.py::test_its_own_test_passes",
    "development/test_bench.py",
    "packaging/test_sdk.py",
]

# Parametrised tests of which `make test` runs every n-th parameter; the others have the marker `rest`.
SAMPLED = {
    "accelerate/test_accelerate.py::test_compile": 2,
    "accelerate/test_accelerate.py::test_grid_sample": 4,
    "accelerate/test_accelerate.py::test_gradients_of_grid_sample": 4,
    "accelerate/test_accelerate.py::test_samples_of_pytorch": 4,
    "accelerate/test_accelerate_torchvision.py::test_deform_conv2d": 4,
    "development/test_definition_errors.py::test_a_condition_that_every_node_of_the_operator_fulfils_compiles": 3,
    "development/test_definition_errors.py::test_a_condition_that_some_node_of_the_operator_fails_does_not_compile": 3,
    "development/test_definition_errors.py::test_a_kernel_that_does_not_match_its_signature_does_not_compile": 4,
    "development/test_definition_errors.py::test_a_malformed_signature_does_not_compile": 5,
    "development/test_definition_errors.py::test_a_node_name_without_domain_or_type_does_not_compile": 4,
    "docs/test_train_example.py::test_a_short_training": 2,
    "models/test_main_line.py::test_convert_reports_errors": 3,
    "operators/test_gradients.py::test_every_combination_of_requested_gradients": 3,
    "operators/test_gradients.py::test_second_derivatives": 3,
    "operators/test_training.py::test_checkpoint": 3,
    "operators/test_training.py::test_expanded_inputs_and_gradients": 3,
    "operators/test_training.py::test_grad_equals_backward": 6,
    "operators/test_training.py::test_gradients_of_each_sample": 3,
    "operators/test_training.py::test_opcheck_with_gradients": 9,
    "operators/test_training.py::test_strided_inputs_and_gradients": 3,
    "operators/test_training.py::test_vjp_and_jvp_agree": 3,
    "optimize/test_optimize.py::test_deformable_attention": 3,
    "optimize/test_optimize_best_box_nms.py::test_loops_of_the_dynamo_exporter": 3,
    "optimize/test_optimize_best_box_nms.py::test_scripted_loops": 4,
    "optimize/test_optimize_bicubic_resize.py::test_every_coordinate_mode": 5,
    "optimize/test_optimize_bicubic_resize.py::test_run_time_sizes": 3,
    "optimize/test_optimize_command.py::test_errors": 4,
    "optimize/test_optimize_corner_pool.py::test_corner_pool": 4,
    "optimize/test_optimize_greedy_nms.py::test_loops_of_the_dynamo_exporter": 3,
    "optimize/test_optimize_greedy_nms.py::test_scripted_loops": 5,
    "optimize/test_optimize_grid_sample.py::test_grid_sample": 3,
    "optimize/test_optimize_instance_norm.py::test_instance_norm": 4,
    "optimize/test_optimize_multi_level_roi_align.py::test_multi_level_roi_align": 3,
    "optimize/test_optimize_opsets.py::test_new_opsets": 7,
    "optimize/test_optimize_opsets.py::test_old_opsets": 7,
    "optimize/test_random_models.py::test_rewritten_models_are_equal": 3,
    "portable/test_formulas.py::test_formula_equals_the_kernel": 4,
    "portable/test_functions.py::test_function_equals_the_kernel": 4,
    "program/test_cli.py::test_any_text_for_a_number_gives_a_result_or_a_clear_error": 2,
    "program/test_damaged_models.py::test_a_full_disk": 4,
    "program/test_damaged_models.py::test_killed_before_a_file_is_renamed": 4,
    "program/test_verify.py::test_torch_program": 2,
    "pytorch_operators/test_translations.py::test_corrected": 2,
    "pytorch_operators/test_translations.py::test_edges": 2,
    "pytorch_operators/test_translations.py::test_sample": 3,
    "runtimes/test_fake_kernels.py::test_changed_extents": 8,
    "runtimes/test_fake_kernels.py::test_wrong_attributes": 6,
    "runtimes/test_fake_kernels.py::test_wrong_types_and_ranks": 8,
    "runtimes/test_lifetime.py::test_order_of_destruction": 2,
    "runtimes/test_openvino.py::test_every_node": 12,
    "runtimes/test_openvino.py::test_openvino_files": 12,
    "runtimes/test_random_graphs.py::test_random_graph": 4,
    "runtimes/test_torch.py::test_opcheck": 6,
    "runtimes/test_torch.py::test_round_trip_through_onnx": 8,
    "runtimes/test_torch.py::test_round_trip_with_dynamo": 6,
    "runtimes/test_torch_memory.py::test_failing_calls_leak_nothing": 4,
    "runtimes/test_torch_memory.py::test_successful_calls_leak_nothing": 3,
}
