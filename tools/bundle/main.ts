/** `npm run build`: the program, in dist/. */
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { writeProgram } from './write-program.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

await writeProgram(ROOT, join(ROOT, 'dist'));
