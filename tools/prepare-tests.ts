/** Fetches what the tests need and npm ci does not bring: programs from Debian, and Node.js of other versions. `npm test` fetches what is missing then. */
import { NODE_VERSIONS, installNode } from '../test/support/node-versions.ts';
import { installMissingPrograms } from './test-run/test-programs.ts';

for (const line of installMissingPrograms()) console.error(`!!! ${line}`);
for (const version of NODE_VERSIONS) console.log(`Node.js ${version}: ${await installNode(version)}`);
