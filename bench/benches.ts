// Every bench, in the order in which they run: together every row of "Speed and size".

import type { Bench } from "./bench.ts";
import { captureOutput } from "./rows/capture.ts";
import { coldStart } from "./rows/cold-start.ts";
import { files } from "./rows/files.ts";
import { history } from "./rows/history.ts";
import { idle } from "./rows/idle.ts";
import { post } from "./rows/post.ts";
import { runs } from "./rows/runs.ts";
import { statusFresh } from "./rows/status-fresh.ts";
import { statusPipelined } from "./rows/status-pipelined.ts";
import { statusProcess } from "./rows/status-process.ts";
import { supervisor } from "./rows/supervisor.ts";
import { tickets } from "./rows/tickets.ts";
import { version } from "./rows/version.ts";

export const benches: readonly Bench[] = [
  version,
  statusProcess,
  statusFresh,
  statusPipelined,
  post,
  runs,
  captureOutput,
  files,
  tickets,
  history,
  idle,
  supervisor,
  coldStart,
];
