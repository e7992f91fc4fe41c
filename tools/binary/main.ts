/** `npm run build:binary [-- FILE]`: builds build/bearer-sidecar, and prints its size and what it needs from the host. */
import { join, resolve } from 'node:path';
import { inMegabytes } from '../image/sizes.ts';
import { buildBinary } from './build-binary.ts';

const NAME = process.platform === 'win32' ? 'bearer-sidecar.exe' : 'bearer-sidecar';

const { file, bytes, bundleBytes, licences, isStripped, requirements } = await buildBinary(
  resolve(process.argv[2] ?? join(import.meta.dirname, '..', '..', 'build', NAME)),
);
console.log(
  `${file}: ${inMegabytes(bytes)}, of which ${inMegabytes(bundleBytes)} are the program, Node.js ${process.version}`,
);
if (requirements !== undefined) {
  console.log(`needs these libraries: ${requirements.libraries.join(', ')}`);
  console.log(`in these versions or newer: ${requirements.symbolVersions.join(', ')}`);
}
if (process.platform === 'linux' && !isStripped)
  console.log('a quarter larger than necessary: strip (binutils) is not installed');
console.log(`licences of what is inside: ${licences}`);
