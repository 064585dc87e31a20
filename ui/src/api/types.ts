/**
 * The parts of the server's contract that the page uses. The names are those of
 * api/execution; what a stream may leave out is optional here.
 */

export interface ExecutionRequest {
  language: string;
  code: string;
  stdin?: string;
}

export type Encoding = 'utf-8' | 'base64';

export type Status =
  | 'succeeded'
  | 'failed'
  | 'timed_out'
  | 'out_of_memory'
  | 'output_limit'
  | 'cancelled'
  | 'platform_error';

export interface Start {
  sandbox_name: string;
  language: string;
  request_id: string;
}

export interface Output {
  data: string;
  encoding: Encoding;
  /** Bytes that were left out directly before this piece. */
  skipped?: number;
}

export interface RichResult {
  mime: string;
  /** Text for text and JSON types, base64 for all others. */
  data: string;
  /** How many bytes of stdout the program had written by then. */
  position: number;
  /** The same value in other media types. */
  alternatives: { mime: string; data: string }[];
}

export interface Artifact {
  path: string;
  size: number;
  mime: string;
  encoding: Encoding;
  content: string;
  /** Why the content is left out; empty when it is there. */
  omitted: string;
}

export interface StreamTruncation {
  truncated: boolean;
  captured_bytes: number;
  head_bytes: number;
  total_bytes: number;
}

export interface Exit {
  exit_code: number | null;
  sandbox_name: string;
  status: Status;
  signal: string | null;
  truncated?: { stdout: StreamTruncation; stderr: StreamTruncation };
  usage?: { cpu_ms: number; wall_ms: number; max_rss_bytes: number; oom_kills: number };
  timings_ms?: { queue: number; claim: number; start: number; run: number; total: number };
  notes?: string[] | null;
  problem?: Problem | null;
}

/** A problem document (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  field?: string;
  request_id?: string;
  retry_after_seconds?: number;
  partial?: { stdout: string; stderr: string; sandbox_name: string };
}

export interface Language {
  name: string;
  aliases: string[] | null;
  version: string;
  warm: boolean;
  pools: string[] | null;
}

export type SandboxState = 'warming' | 'warm' | 'claimed';

export interface PoolStatus {
  name: string;
  languages: string[] | null;
  desired: number;
  warm: number;
  warming: number;
  claimed: number;
  waiting: number;
  sandboxes: { name: string; state: SandboxState }[] | null;
  // How many sandboxes the list leaves out.
  sandboxes_omitted?: number;
  problem: string;
}

export interface Model {
  id: string;
  owned_by: string;
}

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant';
  content: string;
}
