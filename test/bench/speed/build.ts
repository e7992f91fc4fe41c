/** Builds `dist`, which is what users run. */
import { spawnSync } from 'node:child_process';
import { cpSync, statSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Over what is there, unlike `npm run build`: a `dist` that somebody runs from must not be gone for a while.
 * @returns whether it was without faults; with them it is emitted all the same
 */
export function build(root: string): boolean {
  const { status } = spawnSync('tsc', ['-p', 'tsconfig.build.json'], { cwd: root, stdio: ['ignore', 2, 2] });
  const isLeftByCompiler = (file: string): boolean => statSync(file).isDirectory() || !/\.(?:ts|json)$/.test(file);
  cpSync(join(root, 'src'), join(root, 'dist'), { recursive: true, filter: isLeftByCompiler });
  return status === 0;
}
