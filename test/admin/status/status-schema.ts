/** The validator of /status: config/status-schema.json, and no member that it does not name. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

const PATH = join(import.meta.dirname, '..', '..', '..', 'config', 'status-schema.json');

const schema = JSON.parse(readFileSync(PATH, 'utf8')) as unknown;
const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, allErrors: true });
formats.default(ajv);
const validate = ajv.compile(closeObjects(schema) as object);

/** What is wrong with a document of /status; empty when it is valid. */
export function findStatusFaults(document: unknown): string[] {
  if (validate(document)) return [];
  return (validate.errors ?? []).map(({ instancePath, message, params }) =>
    [instancePath, message, JSON.stringify(params)].join(' '),
  );
}

/** Later versions may add members; within one version the schema names all. */
function closeObjects(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(closeObjects);
  if (typeof part !== 'object' || part === null) return part;
  const closed = Object.fromEntries(Object.entries(part).map(([name, value]) => [name, closeObjects(value)]));
  return 'properties' in closed && !('additionalProperties' in closed)
    ? { ...closed, additionalProperties: false }
    : closed;
}
