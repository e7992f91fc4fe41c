/**
 * Removes terminal control characters and registered secrets from log lines before they are written.
 * A second line of defence: events and messages hold no secret.
 */
import { MASK, buildAnyTextPattern, SHORTEST_SECRET, listSecretEncodings } from '../../platform/secret-redaction.ts';

/** Kept besides those in use: secrets rotate, and a late error may hold an old one. */
const RETAINED_OLD_SECRETS = 7;

/** DEL, the C1 controls (8-bit CSI included) and the two line separators that JSON does not escape. */
const RAW_CONTROLS = /[\u007f-\u009f\u2028\u2029]/g;

export interface Redactor {
  /**
   * Masks `value` from now on: plain, URL-encoded, form-encoded and in base64. With a `clientId` also as Basic credentials
   * (RFC 7617 §2). Keeps the newest values: those in use and seven more. A value under four characters is ignored.
   * @param replaced the value that this one replaces: dropped before any that may still be in use
   */
  register(value: string, clientId?: string, replaced?: string): void;
  redact(lines: string): string;
}

/** @param inUse how many secrets are in use at the same time */
export function createRedactor(inUse = 1): Redactor {
  const encodingsBySecret = new Map<string, readonly string[]>();
  const replacedSecrets = new Set<string>();
  let pattern: RegExp | undefined;
  return {
    register(value, clientId, replaced) {
      if (value.length < SHORTEST_SECRET) return;
      if (replaced !== undefined && encodingsBySecret.has(replaced)) replacedSecrets.add(replaced);
      replacedSecrets.delete(value);
      const known = encodingsBySecret.get(value) ?? [];
      encodingsBySecret.delete(value);
      encodingsBySecret.set(value, [
        ...new Set([...known, ...listSecretEncodings(value, clientId).map(toJsonStringContent)]),
      ]);
      for (const oldest of [...replacedSecrets, ...encodingsBySecret.keys()]) {
        if (encodingsBySecret.size <= RETAINED_OLD_SECRETS + inUse) break;
        encodingsBySecret.delete(oldest);
        replacedSecrets.delete(oldest);
      }
      pattern = buildAnyTextPattern([...encodingsBySecret.values()].flat());
    },
    redact(lines) {
      const plain = escapeControls(lines);
      return pattern === undefined ? plain : plain.replace(pattern, MASK);
    },
  };
}

// Only the escaped form occurs inside a JSON string, and it never matches the structure of the JSON.
function toJsonStringContent(text: string): string {
  return escapeControls(JSON.stringify(text).slice(1, -1));
}

function escapeControls(text: string): string {
  return text.replace(RAW_CONTROLS, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
