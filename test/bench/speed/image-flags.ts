/** The flags that the image gives to Node.js: what is measured is what runs there. */
import { readFileSync } from 'node:fs';

const DOCKERFILE = new URL('../../../Dockerfile', import.meta.url);

/** From `NODE_OPTIONS` of the Dockerfile; none when it sets none. */
export function readImageFlags(): string[] {
  const options = /^ENV NODE_OPTIONS="?([^"\n]*)/m.exec(readFileSync(DOCKERFILE, 'utf8'))?.[1] ?? '';
  return options.split(' ').filter((flag) => flag !== '');
}
