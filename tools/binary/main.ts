/** `npm run build:binary [-- FILE]`: builds build/bearer-sidecar and says what it weighs and what it needs. */
import { join, resolve } from 'node:path';
import { buildBinary } from './build-binary.ts';

const NAME = process.platform === 'win32' ? 'bearer-sidecar.exe' : 'bearer-sidecar';

const { file, bytes, bundleBytes, licences, requiredLibraries, notes } = await buildBinary(
  resolve(process.argv[2] ?? join(import.meta.dirname, '..', '..', 'build', NAME)),
);
console.log(
  `${file}: ${inMegabytes(bytes)}, of which ${inMegabytes(bundleBytes)} are the program, Node.js ${process.version}`,
);
if (requiredLibraries !== undefined) console.log(`needs from the host: ${requiredLibraries.join(', ')}`);
for (const remark of notes) console.log(`note: ${remark}`);
console.log(`licences of what is inside: ${licences}`);

function inMegabytes(count: number): string {
  return `${(count / 1_000_000).toFixed(1)} MB`;
}
