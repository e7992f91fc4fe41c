/** Reads a JSON object that a server sent. Pure. */

export type JsonFields = Readonly<Record<string, unknown>>;

/** Undefined when the body is not a JSON object. Never throws: the parser's message would quote the body. */
export function parseJsonObject(body: string): JsonFields | undefined {
  try {
    const parsed: unknown = JSON.parse(body);
    return isJsonObject(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
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
