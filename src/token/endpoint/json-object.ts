/** Reads a JSON object that a server sent. Pure. */
import { tryRead } from '../../platform/try-read.ts';

export type JsonFields = Readonly<Record<string, unknown>>;

/** Undefined when the body is not a JSON object. */
export function parseJsonObject(body: string): JsonFields | undefined {
  const parsed = tryRead(() => JSON.parse(body) as unknown);
  return isJsonObject(parsed) ? parsed : undefined;
}

/** The own member of exactly this name, else the one to which its dots lead (`data.token`); undefined when there is none. */
export function findMember(fields: JsonFields, path: string): unknown {
  if (Object.hasOwn(fields, path)) return fields[path];
  const own = (value: unknown, name: string): unknown =>
    isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return path.split('.').reduce<unknown>(own, fields);
}

export function isJsonObject(value: unknown): value is JsonFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
