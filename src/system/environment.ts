// What a child process may know of our environment.

export type Environment = Record<string, string>;

/** Never handed to anybody: a remote daemon's address and token, and the switches that turn a Bun program into something else. */
const neverPassed = ["SLOOP_REMOTE", "SLOOP_REMOTE_TOKEN", "SLOOP_REMOTE_TOKEN_FILE", "BUN_OPTIONS", "BUN_BE_BUN"];

/** `git rev-parse --local-env-vars`: they tie git to one repository, such as that of a hook which started the daemon. */
export const gitLocalVariables: readonly string[] = [
  "GIT_ALTERNATE_OBJECT_DIRECTORIES",
  "GIT_CONFIG",
  "GIT_CONFIG_PARAMETERS",
  "GIT_CONFIG_COUNT",
  "GIT_OBJECT_DIRECTORY",
  "GIT_DIR",
  "GIT_WORK_TREE",
  "GIT_IMPLICIT_WORK_TREE",
  "GIT_GRAFT_FILE",
  "GIT_INDEX_FILE",
  "GIT_NO_REPLACE_OBJECTS",
  "GIT_REPLACE_REF_BASE",
  "GIT_PREFIX",
  "GIT_INTERNAL_SUPER_PREFIX",
  "GIT_SHALLOW_FILE",
  "GIT_COMMON_DIR",
];

export type EnvironmentChange = {
  add?: Readonly<Record<string, string>>;
  remove?: readonly string[];
};

/** `base` in full, without what no child may see and without `remove`, with `add` on top. */
export function childEnvironment(
  base: Readonly<Record<string, string | undefined>>,
  change: EnvironmentChange = {},
): Environment {
  const dropped = new Set([...neverPassed, ...gitLocalVariables, ...(change.remove ?? [])]);
  const kept: Environment = {};
  for (const [name, value] of Object.entries(base)) {
    if (value !== undefined && !dropped.has(name)) kept[name] = value;
  }
  return Object.assign(kept, change.add);
}
