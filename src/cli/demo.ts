import type { Session } from "./session.ts";
export async function demo(_s: Session): Promise<number> {
  return 1;
}
