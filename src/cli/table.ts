// Columns: two spaces between them, each as wide as its widest cell on the screen, nothing padded at the line's end.

export type Cell = { text: string; width: number };

/** A cell that takes no colour. */
export function cell(text: string): Cell {
  return { text, width: Bun.stringWidth(text) };
}

/** A cell whose text is shown as `painted`, which takes as many columns as `text`. */
export function paintedCell(text: string, painted: string): Cell {
  return { text: painted, width: Bun.stringWidth(text) };
}

/** One line per row; every cell but a row's last is padded, colour codes not counted. */
export function columns(rows: readonly (readonly Cell[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.slice(0, -1).forEach(({ width }, index) => {
      widths[index] = Math.max(widths[index] ?? 0, width);
    });
  }
  const padded = (part: Cell, index: number) => part.text + " ".repeat((widths[index] ?? 0) - part.width);
  return rows.map((row) => row.map((part, at) => (at < row.length - 1 ? padded(part, at) : part.text)).join("  "));
}
