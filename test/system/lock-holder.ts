// A second process for the lock's tests: takes the lock of argv[2], says so, and holds it until it is killed.

import { openLock } from "../../src/system/lock.ts";

const [, , path = "", graceMs = "0"] = process.argv;
const lock = await openLock(path, { graceMs: Number(graceMs), pollMs: 5 });
console.log(lock === null ? "busy" : "held");
if (lock === null) process.exit(0);
await new Promise(() => setInterval(() => undefined, 60_000));
