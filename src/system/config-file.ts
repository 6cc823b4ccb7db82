// Where the configuration stands. A file of its own, because the command line begins to read it before anything else is loaded.

/** In a repository, from its root. */
export const configFile = ".agents/sloop/config.yaml";
