// Whether a daemon was there when the command ended: what took the command may be taking the daemon in the same moment.

import type { Channel } from "./channel.ts";

const longestMs = 500;
const lookMs = 100;

/**
 * Whether a daemon has the channel at the call. After a signal it is looked at anew for 500 ms, since a reboot or an
 * out-of-memory kill takes one process after another: it was there only if the same daemon still is.
 */
export async function watchAttendance(channel: Channel, signalled: boolean): Promise<boolean> {
  const { holder } = channel;
  let held = await channel.heldNow(holder);
  if (!signalled) return held;
  const until = performance.now() + longestMs;
  while (held && performance.now() < until) {
    await Bun.sleep(lookMs);
    held = await channel.heldNow(holder);
  }
  return held;
}
