/** Bodies in pieces on each version of Node.js that is supported, a short form of `npm run soak:bodies`. */
import { expect, it } from 'vitest';
import { NODE_VERSIONS, installNode } from '../support/node-versions.ts';
import { runBodies } from './load.ts';

const COUNT = 200;

it.each(NODE_VERSIONS)(
  'invariant 11: on Node.js %s every body that waits for a token, a place or its replay arrives as it was sent',
  async (version) => {
    const report = await runBodies({
      count: COUNT,
      seed: 1,
      node: await installNode(version),
      name: `bodies-${version}`,
    });
    expect(report.altered).toEqual([]);
    expect(report.brokenOff).toBe(0);
    // Some bodies are too large to be sent again: their 401 or 429 is the response.
    expect(report.statuses['200']).toBeGreaterThan(COUNT * 0.95);
    expect(report.replayed).toBeGreaterThan(0);
  },
);
