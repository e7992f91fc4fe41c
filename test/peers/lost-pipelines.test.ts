/** Pipelined requests end with their connection on each supported version of Node.js: some emit no `close` for a response behind another. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { NODE_VERSIONS, installNode } from '../support/node-versions.ts';

it.each(NODE_VERSIONS)(
  'on Node.js %s a lost connection leaves none of its requests, however it is lost',
  async (version) => {
    const child = join(import.meta.dirname, 'lost-pipelines.child.ts');
    const { stdout } = await promisify(execFile)(await installNode(version), [child]);
    expect(JSON.parse(stdout)).toBe('none');
  },
);
