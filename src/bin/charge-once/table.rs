//! The look of every table.

use comfy_table::{ContentArrangement, LineStyle, Table, presets::UTF8_HORIZONTAL_ONLY};

pub(crate) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.style_mut().row_separator = LineStyle::none();
    table.set_header(header);
    table
}
