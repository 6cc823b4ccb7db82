// The completion scripts, made from the command table. Bash and zsh share one portable function; fish has rules of its own.

import type { Command, Option, Positional } from "./command.ts";
import { commands, type completionShells, globalOptions, rootOptions } from "./commands.ts";
import { topics } from "./topics.ts";

export type Shell = (typeof completionShells)[number];

/** What may stand at a place: fixed words, ids to be asked for, or a file. */
type Source = { words?: readonly string[]; refs?: readonly string[]; files?: true };

/** What a label in the table stands for; a label that is not here is completed with nothing. */
const byLabel: Readonly<Record<string, Source>> = {
  TICKET: { refs: ["tickets"] },
  "T1,T2": { refs: ["tickets"] },
  RUN: { refs: ["runs", "tickets"] },
  REF: { refs: ["tickets", "runs", "projects"] },
  REF_OR_PATTERN: { refs: ["tickets", "runs", "projects"] },
  P: { refs: ["projects"] },
  F: { refs: ["flows"] },
  S: { words: ["ready", "held", "blocked", "claimed", "merged", "failed", "needs_review"] },
  FILE: { files: true },
  TOPIC: { words: [...commands.map(({ name }) => name), ...Object.keys(topics), "topics"] },
};

function optionSource({ value }: Option): Source {
  if (value === undefined) return {};
  return value.form.kind === "choice" ? { words: value.form.choices } : (byLabel[value.label] ?? {});
}

function positionalSource(positional: Positional): Source {
  return positional.choices === undefined ? (byLabel[positional.label] ?? {}) : { words: positional.choices };
}

function flags(options: readonly Option[]): string[] {
  return options.flatMap(({ name, short }) => [`--${name}`, ...(short === undefined ? [] : [`-${short}`])]);
}

/** What the shared function does at a place. */
function shAction(source: Source): string {
  const parts: string[] = [];
  if (source.words !== undefined) parts.push(`_sloop_words ${source.words.join(" ")}`);
  for (const kind of source.refs ?? []) parts.push(`_sloop_refs ${kind}`);
  if (source.files === true) parts.push("echo :files:");
  return parts.join("; ") || ":";
}

function arm(pattern: string, action: string): string {
  return `    ${pattern}) ${action} ;;`;
}

const valued = (options: readonly Option[]) => options.filter((option) => option.value !== undefined);
const spelled = ({ name, short }: Option) => [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];

function valueArms(): string[] {
  const global = valued(globalOptions).map((option) => arm(`*" --${option.name}"`, shAction(optionSource(option))));
  const own = commands.flatMap((command) =>
    valued(command.options).map((option) => {
      const pattern = spelled(option).map((word) => `"${command.name} ${word}"`);
      return arm(pattern.join("|"), shAction(optionSource(option)));
    }),
  );
  return [...own, ...global];
}

function positionalArms(): string[] {
  return commands.flatMap((command) =>
    command.positionals.map((positional, index) => {
      return arm(`"${command.name} ${index}"`, shAction(positionalSource(positional)));
    }),
  );
}

function flagArms(): string[] {
  const own = commands.map((command) =>
    arm(`"${command.name}"`, `_sloop_words ${flags([...command.options, ...globalOptions]).join(" ")}`),
  );
  return [...own, arm('""', `_sloop_words ${flags(rootOptions).join(" ")}`)];
}

function takesValue(): string {
  const own = commands.flatMap((command) =>
    valued(command.options).flatMap((option) => spelled(option).map((word) => `"${command.name} ${word}"`)),
  );
  return [...own, ...valued(globalOptions).map((option) => `*" --${option.name}"`)].join("|");
}

/** Prints what may stand where `$1` is being typed, one per line; the other arguments are the words before it. */
function sharedFunction(): string {
  return `_sloop_words() { printf '%s\\n' "$@"; }
_sloop_refs() { command sloop completions refs "$1" 2>/dev/null; }
_sloop_candidates() {
  local cur="$1" cmd="" waits="" count=0 word
  shift
  for word in "$@"; do
    if [ -n "$waits" ]; then waits=""; continue; fi
    case "$cmd $word" in
      ${takesValue()}) waits="$word"; continue ;;
    esac
    case "$word" in
      -*) ;;
      *) if [ -z "$cmd" ]; then cmd="$word"; else count=$((count + 1)); fi ;;
    esac
  done
  if [ -n "$waits" ]; then
    case "$cmd $waits" in
${valueArms().join("\n")}
    esac
    return 0
  fi
  case "$cur" in
    -*)
      case "$cmd" in
${flagArms().join("\n")}
      esac
      return 0 ;;
  esac
  case "$cmd $count" in
    " 0") _sloop_words ${commands.map(({ name }) => name).join(" ")} ;;
${positionalArms().join("\n")}
  esac
  return 0
}`;
}

function bashScript(): string {
  return `# sloop completions for bash. In ~/.bashrc: eval "$(sloop completions bash)"
${sharedFunction()}
_sloop() {
  local IFS=$'\\n' cur="\${COMP_WORDS[COMP_CWORD]}" found
  found=$(_sloop_candidates "$cur" "\${COMP_WORDS[@]:1:COMP_CWORD-1}")
  if [ "$found" = ":files:" ]; then
    COMPREPLY=($(compgen -f -- "$cur"))
    compopt -o filenames 2>/dev/null
  else
    COMPREPLY=($(compgen -W "$found" -- "$cur"))
  fi
}
complete -F _sloop sloop
`;
}

function zshScript(): string {
  return `#compdef sloop
# sloop completions for zsh. In ~/.zshrc, after compinit: eval "$(sloop completions zsh)"
${sharedFunction()}
_sloop() {
  emulate -L zsh
  local found
  found="$(_sloop_candidates "\${words[CURRENT]}" "\${(@)words[2,CURRENT-1]}")"
  if [[ "$found" == ":files:" ]]; then _files; elif [[ -n "$found" ]]; then compadd -- "\${(@f)found}"; fi
}
if [[ "\${funcstack[1]}" == "_sloop" ]]; then _sloop "$@"; else compdef _sloop sloop; fi
`;
}

const quoted = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

function fishArguments(source: Source): string {
  const parts = [
    ...(source.words ?? []),
    ...(source.refs ?? []).map((kind) => `(command sloop completions refs ${kind} 2>/dev/null)`),
  ];
  return parts.length === 0 ? "" : ` -a ${quoted(parts.join(" "))}`;
}

function fishOption(condition: string, option: Option): string {
  const short = option.short === undefined ? "" : ` -s ${option.short}`;
  const value = option.value === undefined ? "" : ` -x${fishArguments(optionSource(option))}`;
  return `complete -c sloop${condition} -l ${option.name}${short}${value} -d ${quoted(option.summary)}`;
}

function fishCommand(command: Command): string[] {
  const condition = ` -n ${quoted(`test (__sloop_command) = ${command.name}`)}`;
  const [first] = command.positionals;
  const source = first === undefined ? {} : positionalSource(first);
  const words = source.files === true ? " -F" : fishArguments(source);
  return [
    `complete -c sloop -n 'test (__sloop_command) = none' -a ${command.name} -d ${quoted(command.summary)}`,
    ...(words === "" ? [] : [`complete -c sloop${condition}${words}`]),
    ...command.options.map((option) => fishOption(condition, option)),
  ];
}

function fishScript(): string {
  return `# sloop completions for fish: sloop completions fish > ~/.config/fish/completions/sloop.fish
function __sloop_command
  set -l waits 0
  for word in (commandline -opc)[2..-1]
    if test $waits = 1
      set waits 0
      continue
    end
    switch $word
      case ${valued(globalOptions)
        .map(({ name }) => `--${name}`)
        .join(" ")}
        set waits 1
      case '-*'
      case '*'
        echo $word
        return
    end
  end
  echo none
end
complete -c sloop -f
${commands.flatMap(fishCommand).join("\n")}
${rootOptions.map((option) => fishOption("", option)).join("\n")}
`;
}

/** The script to be read by `shell`, ending in one newline. */
export function completionScript(shell: Shell): string {
  switch (shell) {
    case "bash":
      return bashScript();
    case "zsh":
      return zshScript();
    case "fish":
      return fishScript();
  }
}
