// Gallery of a shared link: opens images in a lightbox. Without this script the links open the page of an image.

/** Horizontal movement of a finger that shows another image, in pixels. */
const SWIPE_MIN = 40;

const element = (id) => document.getElementById(id);
const [lightbox, image, undecodable, previous, next, caption, position, download] =
  ["lightbox", "image", "undecodable", "previous", "next", "caption", "position", "download"].map(element);
const links = [...document.querySelectorAll(".gallery a")];
const { side } = document.querySelector(".gallery").dataset;

/** Index of the image that is shown. */
let shown = 0;
let swipeStart = null;

const at = (step) => (shown + step + links.length) % links.length;
/** URL of the file of a link, without parameters: that of its thumbnail. */
const fileOf = (link) => link.querySelector("img").src.split("?")[0];
const previewOf = (link) => `${fileOf(link)}?width=${side}&height=${side}&format=auto`;

function show(index) {
  shown = index;
  const link = links[index];
  image.hidden = false;
  undecodable.hidden = true;
  image.src = previewOf(link);
  image.alt = caption.textContent = link.querySelector("bdi").textContent;
  position.textContent = `${index + 1} of ${links.length}`;
  download.href = `${fileOf(link)}?download`;
}

image.onload = () => {
  // The next image is probably wanted next.
  if (links.length > 1) new Image().src = previewOf(links[at(1)]);
};
image.onerror = () => {
  image.hidden = true;
  undecodable.hidden = false;
};
links.forEach((link, index) => link.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  show(index);
  lightbox.showModal();
}));
previous.hidden = next.hidden = links.length < 2;
previous.onclick = () => show(at(-1));
next.onclick = () => show(at(1));
element("close").onclick = () => lightbox.close();
lightbox.onclose = () => {
  image.removeAttribute("src");
  links[shown].focus();
};
lightbox.onkeydown = (event) => {
  if (event.key === "ArrowLeft") show(at(-1));
  if (event.key === "ArrowRight") show(at(1));
};
lightbox.onpointerdown = (event) => { swipeStart = event.isPrimary ? event.clientX : null; };
lightbox.onpointerup = (event) => {
  const moved = swipeStart === null ? 0 : event.clientX - swipeStart;
  swipeStart = null;
  if (Math.abs(moved) >= SWIPE_MIN) show(at(moved < 0 ? 1 : -1));
};
