/** What src/listener/connection-reading.ts and the limit of header fields rely on in node:http, on each supported version of Node.js. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { NODE_VERSIONS, installNode } from '../support/node-versions.ts';

it.each(NODE_VERSIONS)(
  'on Node.js %s a paused connection is not read, and one that is no longer parsed makes no request; too many fields show',
  async (version) => {
    const child = join(import.meta.dirname, 'connection-reading.child.ts');
    const { stdout } = await promisify(execFile)(await installNode(version), [child]);
    const paused = { stoppedAfter: true, errors: 0 };
    const stopped = { stoppedAfter: true, requests: 10, errors: 1 };
    expect(JSON.parse(stdout)).toEqual({ results: [paused, paused, stopped, stopped], counts: [] });
  },
);
