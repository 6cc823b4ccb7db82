// The contents page: which handler answers each verb. The types keep it complete.

import type { Daemon } from "../daemon/context.ts";
import type { WorkerTicketDetail } from "../protocol/replies.ts";
import type { OperatorVerb, Params, WorkerOnlyVerb } from "../protocol/verbs.ts";
import { brief } from "./brief.ts";
import { cancel } from "./cancel.ts";
import { daemon } from "./daemon.ts";
import { events } from "./events.ts";
import type { Handler, WorkerCaller } from "./handler.ts";
import { hold } from "./hold.ts";
import { init } from "./init.ts";
import { list } from "./list.ts";
import { logs } from "./logs.ts";
import { note } from "./note.ts";
import { pause } from "./pause.ts";
import { post } from "./post.ts";
import { ready } from "./ready.ts";
import { reindex } from "./reindex.ts";
import { restart } from "./restart.ts";
import { resume } from "./resume.ts";
import { retry } from "./retry.ts";
import { run } from "./run.ts";
import { show } from "./show.ts";
import { status } from "./status.ts";
import { stop } from "./stop.ts";
import { verdict } from "./verdict.ts";
import { wait } from "./wait.ts";
import { workerShow } from "./worker-show.ts";

type OperatorHandlers = { readonly [V in OperatorVerb]: Handler<V> };

export const operatorHandlers: OperatorHandlers = {
  daemon,
  stop,
  restart,
  pause,
  resume,
  post,
  run,
  retry,
  hold,
  ready,
  cancel,
  reindex,
  show,
  logs,
  events,
  status,
  list,
  wait,
  init,
};

type WorkerHandlers = { readonly [V in WorkerOnlyVerb]: Handler<V> } & {
  /** The one verb both sockets know; a worker sees its own ticket only. */
  readonly show: (daemon: Daemon, args: Params<"show">, caller: WorkerCaller) => WorkerTicketDetail;
};

export const workerHandlers: WorkerHandlers = { brief, show: workerShow, note, verdict };
