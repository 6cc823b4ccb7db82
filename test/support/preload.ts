// Runs before every test file: the suite must not see the operator's own sloop, git or colour settings.

for (const name of Object.keys(process.env)) {
  if (name.startsWith("SLOOP_") && name !== "SLOOP_BIN") delete process.env[name];
  if (name.startsWith("GIT_")) delete process.env[name];
}
delete process.env["NO_COLOR"];
delete process.env["FORCE_COLOR"];
process.env["GIT_CONFIG_GLOBAL"] = "/dev/null";
process.env["GIT_CONFIG_NOSYSTEM"] = "1";
