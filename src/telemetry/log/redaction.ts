/**
 * The last look at a log line before it leaves: no terminal control character, no registered secret.
 * A second line of defence only: events and messages hold no secret to begin with.
 */
import { MASK, buildAnyTextPattern, SHORTEST_SECRET, listSecretEncodings } from '../../platform/secret-redaction.ts';

/** Besides those in use. Secrets rotate, and a late error may still carry an old one. */
const RETAINED_OLD_SECRETS = 7;

/** DEL, the C1 controls (an 8-bit CSI among them) and the two separators that JSON leaves as they are. */
const RAW_CONTROLS = /[\u007f-\u009f\u2028\u2029]/g;

export interface Redactor {
  /**
   * Masks `value` from now on: as it is, URL-encoded, form-encoded and in base64. With a `clientId` also the two joined
   * as Basic credentials (RFC 7617 §2). The newest values are kept, those in use and seven more; one under four characters is ignored.
   */
  register(value: string, clientId?: string): void;
  /** Lines, each a JSON text, safe to write; still JSON texts. */
  redact(lines: string): string;
}

/**
 * A redaction that knows no secret yet.
 * @param inUse secrets that are in use at a time
 */
export function createRedactor(inUse = 1): Redactor {
  const remembered = new Map<string, readonly string[]>();
  let pattern: RegExp | undefined;
  return {
    register(value, clientId) {
      if (value.length < SHORTEST_SECRET) return;
      const known = remembered.get(value) ?? [];
      remembered.delete(value);
      remembered.set(value, [...new Set([...known, ...listSecretEncodings(value, clientId).map(toJsonStringContent)])]);
      for (const oldest of remembered.keys()) {
        if (remembered.size <= RETAINED_OLD_SECRETS + inUse) break;
        remembered.delete(oldest);
      }
      pattern = buildAnyTextPattern([...remembered.values()].flat());
    },
    redact(lines) {
      const plain = escapeControls(lines);
      return pattern === undefined ? plain : plain.replace(pattern, MASK);
    },
  };
}

// Only the escaped form can stand inside a JSON string, and it alone can never match the text's own structure.
function toJsonStringContent(text: string): string {
  return escapeControls(JSON.stringify(text).slice(1, -1));
}

function escapeControls(text: string): string {
  return text.replace(RAW_CONTROLS, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
