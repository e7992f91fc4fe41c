/** What the image gives to Node.js: what is measured is what runs there. */
import { readFileSync } from 'node:fs';

const DOCKERFILE = new URL('../../Dockerfile', import.meta.url);

/** Flags of `NODE_OPTIONS` and of the entry point; none where the Dockerfile names none. */
export function readImageFlags(): string[] {
  const dockerfile = readFileSync(DOCKERFILE, 'utf8');
  const options = /^ENV NODE_OPTIONS="?([^"\n]*)/m.exec(dockerfile)?.[1] ?? '';
  const entryPoint = /^ENTRYPOINT (\[.*\])/m.exec(dockerfile)?.[1] ?? '[]';
  const flags = (JSON.parse(entryPoint) as string[]).filter((word) => word.startsWith('--'));
  return [...options.split(' ').filter((flag) => flag !== ''), ...flags];
}

/** Variables of the allocator. */
export function readImageMemory(): Record<string, string> {
  const line = /^ENV (MALLOC_.*)$/m.exec(readFileSync(DOCKERFILE, 'utf8'))?.[1] ?? '';
  return Object.fromEntries([...line.matchAll(/(\w+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]));
}
