/** Fetches what the tests need and npm ci does not bring: programs from Debian, and Node.js of other versions. `npm test` fetches what is missing then. */
import { NODE_VERSIONS, installNode } from '../test/support/node-versions.ts';
import { installMissingPrograms } from './test-run/test-programs.ts';

// npm fetches them while apt-get, which is waited for without a turn of the event loop, installs programs.
const fetched = NODE_VERSIONS.map(async (version) => `Node.js ${version}: ${await installNode(version)}`);
for (const line of installMissingPrograms()) console.error(`!!! ${line}`);
for (const line of await Promise.all(fetched)) console.log(line);
