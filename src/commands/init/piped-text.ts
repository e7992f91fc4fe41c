/** Reads the text that is piped or redirected to the standard input, bounded in size and in the wait for its first byte. */
import type { Clock } from '../../platform/clock.ts';
import { tryRead } from '../../platform/try-read.ts';

/** One more than can be read is enough to refuse it. */
const MAX_BYTES = 2 * 1024 * 1024;
/** A pipe that stays open without a byte is one that its owner forgot. */
const FIRST_BYTE_TIMEOUT_MS = 5_000;

/** Empty when the input ends, or has no byte within 5 s. A `fault` follows "the pasted text". @param stop ends the wait */
export async function readPipedText(
  input: NodeJS.ReadStream,
  clock: Pick<Clock, 'after'>,
  stop: AbortSignal,
): Promise<{ readonly text: string } | { readonly fault: string }> {
  const abort = new AbortController();
  const cancel = clock.after(FIRST_BYTE_TIMEOUT_MS, () => abort.abort());
  const end = (): void => void input.destroy();
  AbortSignal.any([stop, abort.signal]).addEventListener('abort', end, { once: true });
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of input as AsyncIterable<Buffer>) {
      cancel();
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_BYTES) return { fault: 'is longer than 2 MiB' };
    }
  } catch (error) {
    // Destroyed before its end, or a terminal that is gone: there is no text.
    if (chunks.length > 0) throw error;
  } finally {
    cancel();
  }
  const text = tryRead(() => new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)));
  return text === undefined ? { fault: 'is not UTF-8' } : { text };
}
