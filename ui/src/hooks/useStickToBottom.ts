import { useCallback, useEffect, useRef, useState } from 'react';

/** How close to the end still counts as being there, in pixels. */
const slack = 48;
/** How far from the end a way back is worth offering. */
const far = 160;

/**
 * Keeps a scrolling element at its end while its content grows and growing is
 * true, unless the reader has scrolled away.
 */
export function useStickToBottom(growing: boolean) {
  const frame = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const [away, setAway] = useState(false);
  const stuck = useRef(true);
  const active = useRef(growing);

  const toBottom = useCallback(() => {
    stuck.current = true;
    setAway(false);
    frame.current?.scrollTo({ top: frame.current.scrollHeight });
  }, []);

  useEffect(() => {
    active.current = growing;
  }, [growing]);

  useEffect(() => {
    const el = frame.current;
    if (!el || !content.current) return;
    let lastTop = el.scrollTop;
    const onScroll = () => {
      const rest = el.scrollHeight - el.scrollTop - el.clientHeight;
      // Growing content also ends nearness; only moving up is the reader's wish.
      if (rest <= slack) stuck.current = true;
      else if (el.scrollTop < lastTop) stuck.current = false;
      lastTop = el.scrollTop;
      setAway(rest > far && !(active.current && stuck.current));
    };
    const observer = new ResizeObserver(() => {
      if (active.current && stuck.current) el.scrollTo({ top: el.scrollHeight });
      else setAway(el.scrollHeight - el.scrollTop - el.clientHeight > far);
    });
    el.addEventListener('scroll', onScroll, { passive: true });
    observer.observe(content.current);
    observer.observe(el);
    return () => {
      el.removeEventListener('scroll', onScroll);
      observer.disconnect();
    };
  }, []);

  return { frame, content, away, toBottom };
}
