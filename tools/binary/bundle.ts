/** The program and everything that it imports as one file; what is imported late stays unevaluated until then. */
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { build } from 'rolldown';

/** Asked for by a dependency that does without it: the Redis client, for commands that are not used. */
const DISPENSABLE = new Set(['@node-rs/xxhash']);

export interface Bundle {
  /** The files that it was made of, as absolute paths. */
  readonly modules: readonly string[];
  readonly bytes: number;
}

/**
 * Writes the bundle of src/main.ts.
 * @throws Error when something would be looked for at run time that is not inside: a one-file program has no node_modules
 */
export async function writeBundle(root: string, file: string): Promise<Bundle> {
  const { output } = await build({
    input: join(root, 'src', 'main.ts'),
    cwd: root,
    platform: 'node',
    logLevel: 'silent',
    output: { file, format: 'esm', codeSplitting: false },
  });
  const [chunk, ...others] = output;
  // A late import of what is inside counts as one of the file itself.
  const outside = [
    ...chunk.imports,
    ...chunk.dynamicImports,
    ...requiredIn(chunk.code),
    ...others.map(({ fileName }) => fileName),
  ].filter((name) => name !== chunk.fileName && !isBuiltin(name) && !DISPENSABLE.has(name));
  if (outside.length > 0) throw new Error(`not in the bundle: ${outside.join(', ')}`);
  return { modules: chunk.moduleIds.map((id) => id.replace(/\?.*$/, '')), bytes: Buffer.byteLength(chunk.code) };
}

/** What CommonJS modules ask for, in the words of the bundler. */
function requiredIn(code: string): string[] {
  return [...code.matchAll(/\b__require\("([^"]+)"\)/g)].map(([, name = '']) => name);
}
