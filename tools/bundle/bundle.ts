/** Bundles the program and its packages into few files: each module costs memory that stays, 10 MB for three hundred (docs/adr/0020). */
import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { build, type OutputChunk, type OutputOptions, type RolldownOutput } from 'rolldown';
import { CHUNK_GROUPS } from './chunk-groups.ts';
import { postProcess } from './post-process.ts';

/** Optional imports of a dependency: the Redis client wants it for commands that are not used. */
const OPTIONAL_PACKAGES = new Set(['@node-rs/xxhash']);

/** Imported late and by few users: these stay packages. */
const EXTERNAL_PACKAGES = ['@opentelemetry/', '@redis/client', 'http-proxy-3', 'jose/'];

/**
 * Names stay, for stack traces. Comments and spaces go, since V8 keeps the text in memory. Exports between files keep their names as well: a running
 * program beside which a newer one is installed then imports the right thing late, or fails with its name.
 */
const MINIFY_OPTIONS: OutputOptions = {
  comments: false,
  minifyInternalExports: false,
  minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
};

export interface BundledFile {
  readonly name: string;
  readonly code: string;
  /** Source files whose code it contains, or whose exports it passes on, as absolute paths. */
  readonly modules: readonly string[];
}

/** The bundle of src/main.ts: `main.js` and the files of {@link CHUNK_GROUPS}. {@link EXTERNAL_PACKAGES} are imported from node_modules. */
export async function bundleProgram(root: string): Promise<BundledFile[]> {
  const output = await bundle(root, (name) => EXTERNAL_PACKAGES.some((late) => name.startsWith(late)), {
    entryFileNames: 'main.js',
    chunkFileNames: '[name].js',
    codeSplitting: { groups: CHUNK_GROUPS },
  });
  return output.filter((file) => file.type === 'chunk').map(toBundledFile);
}

/**
 * The bundle of src/main.ts with all packages, as one file; what is imported late stays unevaluated until then.
 * @throws Error when something would be looked for at run time that is not inside: a one-file program has no node_modules
 */
export async function bundleIntoOne(root: string): Promise<BundledFile> {
  const [chunk, ...others] = await bundle(root, (name) => OPTIONAL_PACKAGES.has(name), { codeSplitting: false });
  // The bundler lists a late import of a bundled module as an import of the file itself.
  const outside = [
    ...chunk.imports,
    ...chunk.dynamicImports,
    ...findRequires(chunk.code),
    ...others.map(({ fileName }) => fileName),
  ].filter((name) => name !== chunk.fileName && !isBuiltin(name) && !OPTIONAL_PACKAGES.has(name));
  if (outside.length > 0) throw new Error(`not in the bundle: ${outside.join(', ')}`);
  return toBundledFile(chunk);
}

async function bundle(
  root: string,
  external: (name: string) => boolean,
  output: OutputOptions,
): Promise<RolldownOutput['output']> {
  const made = await build({
    input: join(root, 'src', 'main.ts'),
    cwd: root,
    platform: 'node',
    logLevel: 'silent',
    write: false,
    external: (name) => external(name),
    transform: { target: `node${oldestNode(root)}` },
    output: { format: 'esm', ...MINIFY_OPTIONS, ...output },
  });
  return made.output;
}

/** The oldest Node.js that package.json promises, like `22.21.0`: syntax of newer ones is rewritten for it. */
export function oldestNode(root: string): string {
  const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { engines: { node: string } };
  return engines.node.split(' || ', 1)[0]?.replace(/^[^\d]+/, '') ?? '';
}

function toBundledFile({ fileName, code, moduleIds, facadeModuleId }: OutputChunk): BundledFile {
  const ids = moduleIds.length > 0 || facadeModuleId === null ? moduleIds : [facadeModuleId];
  return { name: fileName, code: postProcess(code), modules: ids.map((id) => id.replace(/\?.*$/, '')) };
}

/** The names that CommonJS modules require, as the bundler writes it. */
function findRequires(code: string): string[] {
  return [...code.matchAll(/\b__require\(["`]([^"`]+)["`]\)/g)].map(([, name = '']) => name);
}
