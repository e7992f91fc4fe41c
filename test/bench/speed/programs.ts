/** Makes sure of the programs that npm does not bring. */
import { installMissingPrograms } from '../../../tools/test-run/test-programs.ts';

const PROGRAMS = ['wrk', 'nginx', 'haproxy', 'caddy', 'openssl'].map((program) => {
  return { program, package: program, tests: 'npm run bench' };
});

/** Installs what is missing where that is possible. @returns one line for each that is missing all the same */
export function installPrograms(): string[] {
  return installMissingPrograms([...PROGRAMS, { program: 'taskset', package: 'util-linux', tests: 'npm run bench' }]);
}
