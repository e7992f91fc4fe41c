/** Opens the file of `unknownCalls.file`, and says which calls are recorded there and with what. */
import type { UnknownCalls } from '../exchange/exchange.ts';
import type { Config } from '../config/config.ts';
import { describeRequest } from '../listener/correlation.ts';
import { truncate } from '../platform/truncate.ts';
import { isIdempotentMethod } from '../retry/policy.ts';
import type { SidecarContext } from './context.ts';
import { CallFile, type CallFileOptions } from '../unknown-calls/call-file.ts';

const MAX_KEY_CHARS = 256;

export interface OpenUnknownCalls extends UnknownCalls {
  /** Why calls cannot be recorded at the moment: the system's error code. */
  fault(): string | undefined;
  /** Writes the last ends. */
  close(): void;
}

/** Undefined without the setting. @param disk default: that of node:fs @throws Error for the operator when the file cannot be used */
export async function openUnknownCalls(
  { file: path, onWriteError, paths }: Config['unknownCalls'],
  { secrets: { mask: maskSecrets }, clock, observe }: Omit<SidecarContext, 'random'>,
  disk: Pick<CallFileOptions, 'write' | 'fstat'> = {},
): Promise<OpenUnknownCalls | undefined> {
  if (path === undefined) return undefined;
  const file = await CallFile.open({ ...disk, path, clock, observe });
  return {
    begin(route, { request, stats, path: target }, idempotencyKey) {
      const { method = 'GET' } = request;
      if (stats.callId !== undefined || isIdempotentMethod(method)) return true;
      const { requestId } = describeRequest(request, stats, maskSecrets);
      stats.callId = file.add({
        requestId: maskSecrets(requestId),
        route,
        method,
        path: paths ? truncate(maskSecrets(target.replace(/[?#].*$/s, ''))) : undefined,
        idempotencyKey: idempotencyKey && truncate(maskSecrets(idempotencyKey), MAX_KEY_CHARS),
      });
      return stats.callId !== undefined || onWriteError === 'forward';
    },
    conclude: (id, code, status) => file.conclude(id, code, status),
    fault: () => file.fault,
    close: () => file.close(),
  };
}
