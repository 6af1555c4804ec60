// SPDX-License-Identifier: Apache-2.0
// Adds a field and two lists to the catalogue's table, which filter its rows. The lists' entries are from the table.
document.addEventListener("DOMContentLoaded", () => {
  const columnsOf = (table) => [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const table = [...document.querySelectorAll("article table")].find((t) => columnsOf(t).includes("runs in"));
  if (!table) return;

  const columns = columnsOf(table);
  const rows = [...table.tBodies[0].rows];
  const text = (row, column) => row.cells[columns.indexOf(column)].textContent;
  const words = (row) => [...text(row, "runs in").split(","), ...text(row, "has").split(",")].map((word) => word.trim());
  const domains = (row) =>
    [...row.cells[columns.indexOf("node names")].querySelectorAll("code")].map((code) =>
      code.textContent.includes("::") ? code.textContent.split("::")[0] : "no domain");
  for (const row of rows) {
    columns.forEach((column, i) => (row.cells[i].dataset.column = column));
  }

  const list = (label, all, of) => {
    const select = document.createElement("select");
    select.setAttribute("aria-label", label);
    select.add(new Option(all, ""));
    for (const word of [...new Set(rows.flatMap(of))].filter(Boolean).sort()) {
      select.add(new Option(`${word} (${rows.filter((row) => of(row).includes(word)).length})`, word));
    }
    return select;
  };
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "name, node or what it does";
  field.setAttribute("aria-label", "words to find");
  const runtime = list("runtime", "runs in, has: any", words);
  const domain = list("domain of the nodes", "nodes of any domain", domains);
  const count = document.createElement("output");

  const choose = () => {
    const terms = field.value.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const found = row.textContent.toLowerCase();
      row.hidden = !(
        terms.every((word) => found.includes(word)) &&
        (!runtime.value || words(row).includes(runtime.value)) &&
        (!domain.value || domains(row).includes(domain.value))
      );
    }
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
  };
  const bar = document.createElement("form");
  bar.className = "catalogue-filter";
  bar.append(field, runtime, domain, count);
  bar.addEventListener("input", choose);
  bar.addEventListener("submit", (event) => event.preventDefault());
  table.classList.add("catalogue");
  table.before(bar);
  choose();
});
