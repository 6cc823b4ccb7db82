// The subjects `sloop help <topic>` explains; compiled in, so that they work offline and anywhere.

const tickets = `A ticket is a Markdown file in .agents/sloop/tickets that says what to do.

  ---
  name: Add request logging
  blocked_by: []
  ---
  What to change, and how one can tell that it is done.

\`name\`, \`blocked_by\` and a body are required; \`blocked_by: []\` says that nothing
must be merged before. \`sloop post FILE\` registers it, writes its id into it and
queues it. \`sloop template ticket\` prints one with every field explained.`;

const flows = `A flow says how a ticket becomes a merge: stages in order, each an action, the
check that judges it, and what happens when it fails.

  stages:
    - name: build
      action: agent
      result_check: { builtin: commits }
    - name: test
      action: { exec: [npm, test] }
      fail_action: { return_to: build, attempts: 2 }
    - name: merge
      action: { builtin: merge }

Files stand in .agents/sloop/flows; a ticket names its flow, else \`default\` is used.
\`sloop template flow\` prints one with every rule explained.`;

const triggers = `A ticket runs when it is ready and a trigger asks for it.

  sloop post FILE            queued, to run as soon as nothing holds it back (--auto)
  sloop post FILE --at 03:00 not before the next local 03:00
  sloop post FILE --manual   registered, nothing queued
  sloop post FILE --hold     registered and held
  sloop run TICKET           now, for one ticket
  sloop run                  now, for whatever is ready
  sloop run --every 2h       again and again
  sloop run --overnight      at the next opening of the running hours

What can hold a run back: \`sloop pause\`, tickets that must be merged before, running
hours, no free slot, an agent that hit its usage limit, a full disk. \`sloop list\`
says for each ticket what it waits for.`;

export const ticketStates = `  ready         Can run once nothing blocks it; a trigger is needed too (\`sloop run\`).
  held          Kept from running; \`sloop ready\` releases it.
  blocked       Ready, but waiting for other tickets to be merged.
  claimed       A run is working on it.
  merged        Terminal: its work is on the target branch.
  failed        Stopped; \`sloop retry\` puts it back to ready, then \`sloop run\` queues it.
  needs_review  Terminal: the run could not be merged; inspect manually.`;

const states = `Ticket states:
${ticketStates}

Run states: claimed, driving and running are live. merged, failed, needs_review,
cancelled, rate_limited, orphaned and aborted are over; the last four put the
ticket back to ready.`;

const refs = `What may stand where a command takes a reference:

  TICK-12           a ticket id
  'Add logging'     a ticket's exact name
  TICK-12-r1        a run alias: ticket and attempt
  9be01f44...       a run id, or at least 4 characters of its beginning
  api               a project id (show, watch, events)
  logging, 'log.*'  a pattern over ticket ids and names (show, watch, events)

logs and cancel want a run: a ticket there means its newest run. wait wants one, too,
and follows a ticket through all its runs. run, hold, ready and retry want an exact
ticket id.`;

const exitCodes = `  0    done; or what was followed ended merged
  1    refused or failed: daemon, run's socket, configuration, file, output;
       or what was followed ended any other way
  2    bad arguments; \`sloop show\` refused what it was given; time ran out
  130  interrupted (SIGINT)
  143  terminated (SIGTERM)

By command, where 2 is also bad arguments for every one:

  init                   0 set up, or already there; 1 something is in the way
  template, completions  0 printed; 1 output failed; 2 unknown kind or shell
  demo                   0 both tickets merged; 1 anything else
  doctor                 0 found no error; 1 found one or more
  daemon, post, run, retry, hold, ready, cancel, pause, resume, list, logs, events,
  reindex                0 done; 1 any refusal, no daemon, broken configuration
  daemon --foreground    0 stopped, or another one serves already; 1 could not serve
  stop                   0 stopping, or none was running; 1 refused: runs are active
  show, status           0 shown, also without a match; 1 no daemon, broken
                         configuration; 2 a bad pattern, an ambiguous prefix
  show -f, watch         0 merged; 1 ended any other way; 2 refused as above, time ran out
  wait                   0 merged; 1 ended any other way, unknown run; 2 time ran out
  logs --follow          0 the run is over, whatever its outcome; 1 refused; 2 time ran out
  events --follow        1 refused; 2 time ran out
  reindex --wait         0 rebuilt; 1 refused, also when the time was up
  brief, note, verdict   0 accepted; 1 refused, not inside a run, socket gone
  show inside a run      0 shown; 1 refused; 2 --follow was given

\`sloop wait\` and \`sloop show -f\` exit 0 only for merged, so they gate a CI job.
These codes are never renumbered.`;

const env = `Read:
  HOME, XDG_STATE_HOME         where state is kept
  XDG_RUNTIME_DIR, TMPDIR      where sockets are
  NO_COLOR                     no colour and no glyphs
  SLOOP_SOCKET, SLOOP_TOKEN    inside a run: its socket and its secret
  TZ                           local time

Given to an agent in a run:
  SLOOP_SOCKET, SLOOP_TOKEN    for brief, show, note and verdict
  SLOOP_RUN_ID, SLOOP_TICKET_ID, SLOOP_STAGE, SLOOP_ATTEMPT
  SLOOP_BIN                    this program; PATH finds it first, too`;

const paths = `In the repository:
  .agents/sloop/config.yaml    configuration
  .agents/sloop/tickets        what to do
  .agents/sloop/flows          how it is judged
  .agents/sloop/projects       groups of tickets
  .worktrees/<short run id>    one run's worktree (worktree_dir)`;

const json = `With --json, a command prints one line: {"id","ok":true,"data"} on standard output,
or {"id","ok":false,"error":{"code","message","details"}} on standard error. It is
the daemon's own reply. show --follow, watch and events --follow print one event
object per line; logs --follow one envelope per page. Worker commands print the
reply line with and without --json.

Codes: invalid_arguments, invalid_request, unsupported_version, unknown_verb,
daemon_unavailable, unauthorized, not_found, conflict, cooldown_active, internal.`;

/** By topic; `paths` is completed with the real ones inside a repository. */
export const topics: Readonly<Record<string, { summary: string; text: string }>> = {
  tickets: { summary: "what a ticket file is", text: tickets },
  flows: { summary: "stages, checks, what happens on failure", text: flows },
  triggers: { summary: "when a ticket runs", text: triggers },
  states: { summary: "ticket and run states", text: states },
  refs: { summary: "how tickets and runs are named", text: refs },
  "exit-codes": { summary: "what each exit code means", text: exitCodes },
  env: { summary: "environment variables", text: env },
  paths: { summary: "where things live", text: paths },
  json: { summary: "output for programs", text: json },
};
