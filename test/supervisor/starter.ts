// A stand-in for a daemon that a test may kill: starts the request in argv[2], says who was spawned, and obeys lines on its input.

import { startSupervised } from "../../src/daemon/supervise.ts";
import type { StageProcess } from "../../src/system/stage-process.ts";
import { supervisorCommand } from "./stage.ts";

const request = JSON.parse(process.argv[2] ?? "") as StageProcess;
const started = await startSupervised(request, { command: supervisorCommand, environment: process.env });
console.log(JSON.stringify(started.ok ? { ok: true, pid: started.process.pid } : started));
for await (const line of console) {
  if (started.ok && line === "gate") started.process.gate();
}
