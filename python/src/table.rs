//! Columns that pandas, Polars, pyarrow and others import directly, without an Arrow library in
//! this package.
//!
//! Source: the Arrow PyCapsule interface. Invariant: a column's unit is in its metadata, under the
//! same key as in the Parquet files.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use store::columns::UNIT;

/// A table.
#[pyclass(frozen, module = "planimeter._native")]
pub struct Table(pub RecordBatch);

#[pymethods]
impl Table {
    /// The table as an Arrow stream in a capsule. Ignores a requested schema, as the interface
    /// allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// The names of its columns.
    fn names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The unit of each column that has one.
    fn units(&self) -> Vec<(String, String)> {
        let unit = |field: &arrow_schema::FieldRef| {
            Some((field.name().clone(), field.metadata().get(UNIT)?.clone()))
        };
        self.0.schema().fields().iter().filter_map(unit).collect()
    }

    /// Row number `row` by column. A missing value is None.
    fn row<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (field, column) in self.0.schema().fields().iter().zip(self.0.columns()) {
            all.set_item(field.name(), value(py, column, row)?)?;
        }
        Ok(all)
    }
}

/// One value of a column.
fn value<'py>(
    py: Python<'py>,
    column: &ArrayRef,
    row: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if row >= column.len() || column.is_null(row) {
        return Ok(None);
    }
    Ok(match column.data_type() {
        DataType::Utf8 => Some(column.as_string::<i32>().value(row).into_pyobject(py)?.into_any()),
        DataType::Float64 => {
            Some(column.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any())
        }
        DataType::UInt64 => {
            Some(column.as_primitive::<UInt64Type>().value(row).into_pyobject(py)?.into_any())
        }
        DataType::Int64 => {
            Some(column.as_primitive::<Int64Type>().value(row).into_pyobject(py)?.into_any())
        }
        // Tables of results have no other types.
        _ => None,
    })
}
