import { defineConfig } from 'vitest/config';
import { IS_LONG_RUN } from './test/support/rounds.ts';
import LongestFirst from './tools/test-run/longest-first.ts';
import { OWN_PROCESS_TESTS, SYSTEM_TESTS } from './tools/test-run/system-tests.ts';

/** Run by `npm run soak`. */
const LONG_TESTS = 'test/soak/*.test.ts';

export default defineConfig({
  test: {
    // For two cores: many tests wait for processes and windows of time. With more of them at once, those that measure time would disturb each other.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // Only what hangs reaches them: a machine with other work took a minute for tests that take seven seconds.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    allowOnly: false,
    restoreMocks: true,
    // Node.js loads the sources itself, as it does for users: through Vite, the tests took a quarter more CPU time. Only Node.js 22 does not
    // know `await using`.
    experimental: { viteModuleRunner: process.versions.node.startsWith('22.'), nodeLoader: false },
    // One process for many files: most of them would take longer to load what they test than to test it.
    isolate: false,
    projects: [
      { extends: true, test: { name: 'own-process', include: OWN_PROCESS_TESTS.map(toTestFiles), isolate: true } },
      { extends: true, test: { name: 'system', include: SYSTEM_TESTS.map(toTestFiles) } },
      {
        extends: true,
        test: {
          name: 'unit',
          // Not by `exclude`, which would hide the one of the command line.
          include: [
            'test/**/*.test.ts',
            ...[...SYSTEM_TESTS, ...OWN_PROCESS_TESTS, LONG_TESTS].map((pattern) => `!${pattern}`),
          ],
        },
      },
      ...(IS_LONG_RUN ? [{ extends: true as const, test: { name: 'long', include: [LONG_TESTS] } }] : []),
    ],
  },
});

function toTestFiles(pattern: string): string {
  return pattern.endsWith('/**') ? `${pattern}/*.test.ts` : pattern;
}
