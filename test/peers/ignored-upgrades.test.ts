/** What src/listener/ignored-upgrades.ts relies on in node:http, on each supported version of Node.js. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { NODE_VERSIONS, installNode } from '../support/node-versions.ts';

it.each(NODE_VERSIONS)(
  'on Node.js %s ignored upgrades and what follows them are parsed, however the packets are cut',
  async (version) => {
    const child = join(import.meta.dirname, 'ignored-upgrades.child.ts');
    const { stdout } = await promisify(execFile)(await installNode(version), [child]);
    expect(JSON.parse(stdout)).toEqual([]);
  },
);
