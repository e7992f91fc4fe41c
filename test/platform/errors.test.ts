import { expect, onTestFinished, test } from 'vitest';
import { SidecarError } from '../../src/platform/errors.ts';

test('an error that ends a request captures no stack, and changes nothing for the errors after it', () => {
  const rejection = new SidecarError('QUEUE_FULL', 'The queue is full');
  expect(rejection.stack?.split('\n')).toEqual(['SidecarError: The queue is full']);
  expect(new Error('a fault').stack?.split('\n').length).toBeGreaterThan(2);
});

test('with --frozen-intrinsics it has a stack, and is made all the same', () => {
  Object.defineProperty(Error, 'stackTraceLimit', { writable: false });
  onTestFinished(() => void Object.defineProperty(Error, 'stackTraceLimit', { writable: true }));
  expect(new SidecarError('QUEUE_FULL', 'The queue is full').code).toBe('QUEUE_FULL');
});
