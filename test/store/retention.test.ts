// What retention is told: when a ticket was resolved, and which runs nobody resolved, page by page.

import { expect, test } from "bun:test";
import { listForgotten, resolvedAt } from "../../src/store/retention.ts";
import { runs, tickets, triggers } from "../../src/store/tables.ts";
import { addTicket, tempStore } from "../support/store.ts";

type Insert = Partial<typeof runs.$inferInsert> & { id: string };

function addRun(store: ReturnType<typeof tempStore>["store"], { id, ...more }: Insert): void {
  const made = { createdAtMs: 1, updatedAtMs: 1 };
  store.db
    .insert(triggers)
    .values({ id: "TR1", kind: "immediate", state: "completed", ...made })
    .onConflictDoNothing()
    .run();
  store.db
    .insert(runs)
    .values({ id, triggerId: "TR1", ticketId: "T", state: "cancelled", attempt: 1, ...made, ...more })
    .run();
}

test("a ticket counts as resolved from when it became merged, not from its last run's end", () => {
  using temp = tempStore();
  const { store } = temp;
  expect(resolvedAt(store.db, "none")).toEqual({ known: false, atMs: null, cleanedAtMs: null });
  addTicket(store, "T");
  addRun(store, { id: "a", exitedAtMs: 100, cleanupEligibleAtMs: 100 });
  expect(resolvedAt(store.db, "a")).toEqual({ known: true, atMs: null, cleanedAtMs: null });
  // As a reindex does it, which found the branch merged by hand.
  store.db.update(tickets).set({ state: "merged", updatedAtMs: 5000 }).run();
  expect(resolvedAt(store.db, "a")).toEqual({ known: true, atMs: 5000, cleanedAtMs: null });
  store.db.update(runs).set({ cleanupEligibleAtMs: 6000 }).run();
  expect(resolvedAt(store.db, "a")).toEqual({ known: true, atMs: 6000, cleanedAtMs: null });
});

test("runs nobody resolved come in pages that miss none, also where many ended at once", () => {
  using temp = tempStore();
  const { store } = temp;
  addTicket(store, "T");
  for (let index = 0; index < 25; index += 1) {
    const id = `r${String(index).padStart(2, "0")}`;
    addRun(store, { id, state: "failed", exitedAtMs: 10 * Math.floor(index / 10), attempt: index, worktreePath: "/x" });
  }
  const seen: string[] = [];
  let after: { exitedAtMs: number; id: string } | null = null;
  for (;;) {
    const page = listForgotten(store.db, { untilMs: 10, after, limit: 7 });
    const last = page.at(-1);
    if (last === undefined) break;
    seen.push(...page.map(({ id }) => id));
    after = { exitedAtMs: last.exitedAtMs!, id: last.id };
  }
  expect(seen).toEqual(Array.from({ length: 20 }, (_, index) => `r${String(index).padStart(2, "0")}`));
});
