// SPDX-License-Identifier: Apache-2.0
// Suppresses overlapping boxes with polyop's C interface, without a runtime.
//
//   L=$(dirname "$(python -c "import polyop; print(polyop.get_library_path())")")
//   rustc --edition 2021 -O nms.rs -L "$L" -l polyop_onnxruntime -C link-arg=-Wl,-rpath,"$L" && ./nms
use std::ffi::{c_char, c_void, CStr};

// The part of polyop.h that this program needs.
const F32: i32 = 0;
const I64: i32 = 8;
const FLOAT: i32 = 1;

#[repr(C)]
struct Tensor {
    data: *const c_void,
    dtype: i32,
    rank: i32,
    shape: *const i64,
}

#[repr(C)]
struct Attribute {
    name: *const c_char,
    kind: i32,
    count: i64,
    values: *const c_void,
}

#[repr(C)]
struct Outputs {
    this: *mut c_void,
    allocate: extern "C" fn(*mut c_void, i32, i32, i32, *const i64) -> *mut c_void,
}

extern "C" {
    fn polyop_call(
        op: *const c_char,
        num_inputs: i32,
        inputs: *const Tensor,
        num_attributes: i32,
        attributes: *const Attribute,
        outputs: *const Outputs,
        threads: *const c_void,
    ) -> *const c_char;
}

/// The only output of nms is keep: i64[K]. polyop calls this function when it knows K.
extern "C" fn allocate_keep(this: *mut c_void, output: i32, dtype: i32, rank: i32, shape: *const i64) -> *mut c_void {
    if output != 0 || dtype != I64 || rank != 1 {
        return std::ptr::null_mut();
    }
    let keep = unsafe { &mut *this.cast::<Vec<i64>>() };
    keep.resize(unsafe { *shape } as usize, 0);
    keep.as_mut_ptr().cast()
}

/// Returns the indices of the boxes that remain, or polyop's message.
fn nms(boxes: &[[f32; 4]], scores: &[f32], threshold: f64) -> Result<Vec<i64>, String> {
    let boxes_shape = [boxes.len() as i64, 4];
    let scores_shape = [scores.len() as i64];
    let inputs = [
        Tensor { data: boxes.as_ptr().cast(), dtype: F32, rank: 2, shape: boxes_shape.as_ptr() },
        Tensor { data: scores.as_ptr().cast(), dtype: F32, rank: 1, shape: scores_shape.as_ptr() },
    ];
    let attribute =
        Attribute { name: c"iou_threshold".as_ptr(), kind: FLOAT, count: 1, values: (&raw const threshold).cast() };
    let mut keep: Vec<i64> = Vec::new();
    let outputs = Outputs { this: (&raw mut keep).cast(), allocate: allocate_keep };
    // The tensors, the attribute and the outputs live until the call returns.
    let error = unsafe { polyop_call(c"nms".as_ptr(), 2, inputs.as_ptr(), 1, &attribute, &outputs, std::ptr::null()) };
    if error.is_null() {
        Ok(keep)
    } else {
        Err(unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned())
    }
}

fn main() {
    let boxes = [[0.0, 0.0, 10.0, 10.0], [1.0, 1.0, 11.0, 11.0], [20.0, 20.0, 30.0, 30.0]];
    let threshold = std::env::args().nth(1).map_or(0.5, |text| text.parse().expect("expected a number"));
    match nms(&boxes, &[0.8, 0.9, 0.7], threshold) {
        Ok(keep) => keep.iter().for_each(|box_index| println!("keep box {box_index}")),
        Err(message) => {
            eprintln!("{message}");
            std::process::exit(1);
        }
    }
}
