import { defineConfig } from 'vitest/config';
import { SYSTEM_TESTS } from './tools/test-run/system-tests.ts';

export default defineConfig({
  test: {
    // Tests that start processes and measure windows of time share the machine badly with many others.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    allowOnly: false,
    restoreMocks: true,
    projects: [
      { extends: true, test: { name: 'unit', include: ['test/**/*.test.ts'], exclude: [...SYSTEM_TESTS] } },
      { extends: true, test: { name: 'system', include: SYSTEM_TESTS.map(toTestFiles) } },
    ],
  },
});

function toTestFiles(pattern: string): string {
  return pattern.endsWith('/**') ? `${pattern}/*.test.ts` : pattern;
}
