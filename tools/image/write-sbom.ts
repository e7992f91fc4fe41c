/** `npm run sbom [-- FILE]`: writes the bill of materials, to build/sbom.cdx.json by default. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createBom } from './sbom.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const { SOURCE_DATE_EPOCH: epoch } = process.env;
const file = resolve(process.argv[2] ?? resolve(ROOT, 'build/sbom.cdx.json'));
const bom = createBom(ROOT, [], epoch === undefined || epoch === '' ? undefined : Number(epoch));
mkdirSync(dirname(file), { recursive: true });
writeFileSync(file, `${JSON.stringify(bom, null, 2)}\n`);
console.log(`${file}: CycloneDX, ${bom.components.length} components`);
