/**
 * Which modules share a file of dist/, and the name of that file, since it stands in stack traces: a package, a folder of src/, or a
 * module that is imported late. The bundler's own names are those of any one module in the file.
 */
import type { CodeSplittingGroup } from 'rolldown';

/** Packages with a file of their own; a package that only they import goes with them. */
const PACKAGES = ['undici', 'pino', 'prom-client', 'convict', 'yaml'];

/**
 * In order of priority: a group takes the modules that it names and all that they import, without those that an earlier group has.
 * The small ones come first, so that `check` and `health` do not load the whole sidecar for a few modules that they share with it.
 */
export const CHUNK_GROUPS: CodeSplittingGroup[] = [
  ...PACKAGES.map((name) => ({ name, test: new RegExp(`/node_modules/${name}/`) })),
  // With the modules that the command line uses as well: `--help` reads no YAML.
  {
    name: 'config-schema',
    test: /\/src\/(?:config\/(?:schema\/|load\/(?:nearest|problems)\.ts$)|platform\/asset\.ts$)/,
  },
  { name: 'config-load', test: /\/src\/config\// },
  {
    name: 'commands',
    test: /\/src\/(?:commands\/(?:command-table|terminal)|platform\/(?:clock|timer-list)|token\/endpoint\/json-object)\.ts$/,
  },
  { name: 'load-failure', test: /\/src\/commands\/load-failure\.ts$/ },
  { name: 'fleet', test: /\/src\/fleet\// },
  // The texts that `check` and the status page share, and the windows of declared limits.
  {
    name: 'causes',
    test: /\/src\/(?:admin\/(?:quantity-texts|verdict\/causes|alerts\/(?:alert-table|conditions))|telemetry\/events|throttle\/declared\/limit-window)\.ts$/,
  },
  // What `check` shares with `run` and `sandbox`: the token client and what reads the responses of the partner.
  { name: 'token', test: /\/src\/(?!admin|commands|telemetry)/, minShareCount: 3 },
  { name: 'sidecar', test: /\/src\/commands\/run\.ts$/ },
  { name: 'page', test: /\/src\/admin\/page\// },
].map((group, index, all) => ({ ...group, priority: all.length - index }));
