/** What the tests use of the receiver, which comes without types. */
declare module '@elastic/mockotlpserver' {
  /** As it is on the wire; ids are bytes. */
  export interface ReceivedSpan {
    readonly name: string;
    readonly traceId: Uint8Array;
    readonly spanId: Uint8Array;
    readonly parentSpanId: Uint8Array | undefined;
    readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
    readonly links: readonly { readonly traceId: Uint8Array; readonly spanId: Uint8Array }[];
  }

  export class MockOtlpServer {
    /** Null before `start` has resolved. */
    readonly httpUrl: string | null;
    constructor(options: {
      readonly services: readonly 'http'[];
      readonly httpHostname: string;
      readonly httpPort: number;
      readonly logLevel: string;
      readonly onTrace: (request: {
        readonly resourceSpans: readonly {
          readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[];
        }[];
      }) => void;
    });
    start(): Promise<void>;
    close(): Promise<void>;
  }
}
