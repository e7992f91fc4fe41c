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

export function isJsonObject(value: unknown): value is JsonFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
