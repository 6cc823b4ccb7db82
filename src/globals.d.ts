// Names and file kinds that the build gives a meaning to.

/** The version in package.json, stamped in by build.ts; undefined when run from source. */
declare const SLOOP_VERSION: string | undefined;

declare module "*.sql" {
  const text: string;
  export default text;
}
declare module "*.md" {
  const text: string;
  export default text;
}
declare module "*.sh" {
  const text: string;
  export default text;
}
declare module "*.yaml" {
  const text: string;
  export default text;
}
