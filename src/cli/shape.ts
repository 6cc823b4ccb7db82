// Whether a reply holds what a page is about to read: a newer or older daemon may answer in another shape.

export type Shape =
  | "string"
  | "number"
  | "boolean"
  | "string?"
  | "number?"
  | { readonly each: Shape }
  | { readonly maybe: Shape }
  | { readonly fields: Readonly<Record<string, Shape>> };

/** Whether `value` has the shape; what the shape does not name may be anything. */
export function fits(value: unknown, shape: Shape): boolean {
  if (typeof shape === "string") {
    if (shape.endsWith("?") && value === null) return true;
    return typeof value === (shape.endsWith("?") ? shape.slice(0, -1) : shape);
  }
  if ("each" in shape) return Array.isArray(value) && value.every((item) => fits(item, shape.each));
  if ("maybe" in shape) return value === undefined || value === null || fits(value, shape.maybe);
  if (typeof value !== "object" || value === null) return false;
  const record = value as Record<string, unknown>;
  return Object.entries(shape.fields).every(([name, field]) => fits(record[name], field));
}
